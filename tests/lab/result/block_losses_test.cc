#include "sextant/lab/result/block_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"

namespace sextant::lab {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const json kGood = {{"block", 1},
                    {"length", 512},
                    {"nats", {800.5, 700}},
                    {"tokens", {256, 256}},
                    {"last", {350.25, 128, 470}},
                    {"seconds", 1.25}};

LossRecord read(const std::string& text) {
  LossRecord last;
  for_each_record(text, "records.jsonl", [&](const JsonFields& fields) {
    last = loss_record(fields, {512, 1024}, 2);
  });
  return last;
}

TEST(LossRecord, IsALine) {
  const LossRecord record = read(kGood.dump() + "\n");
  EXPECT_EQ(record.block, 1);
  EXPECT_EQ(record.length, 512);
  EXPECT_EQ(record.nats, (std::vector<double>{800.5, 700}));
  EXPECT_EQ(record.last_tokens, 128);
  EXPECT_EQ(record.seconds, 1.25);
  int count = 0;
  for_each_record("", "", [&](const JsonFields&) { ++count; });
  for_each_record("{}\n{}", "", [&](const JsonFields&) { ++count; });
  EXPECT_EQ(count, 2);
}

TEST(LossRecord, ThatIsWrongIsNamedByItsLine) {
  const auto refuses = [](const std::string& line, const std::string& message) {
    EXPECT_THAT([&] { read(kGood.dump() + "\n" + line); },
                ThrowsMessage<Error>(HasSubstr("records.jsonl: line 2: " + message)));
  };
  const auto changed = [](const char* name, const json& value) {
    json record = kGood;
    record[name] = value;
    return record.dump();
  };
  refuses("{", "expected JSON");
  refuses("[]", "expected an object, but got array");
  refuses("\n", "expected JSON");
  refuses(std::string(500, '['), "expected at most 64");
  refuses(changed("length", 513), "length: expected one of 512, 1024, but got 513");
  refuses(changed("block", 2), "block: expected an integer from 0 to 1, but got 2");
  refuses(changed("nats", json::array()), "nats: expected numbers, but got []");
  refuses(changed("nats", "x"), "nats: expected numbers");
  refuses(changed("tokens", {256}), "tokens: expected 2 numbers, but got [256]");
  refuses(changed("tokens", {0, 1}), "tokens: expected numbers from 1 to ");
  refuses(changed("last", {1, 2}), "last: expected 3 numbers, but got [1,2]");
  refuses(changed("last", {1, 0, 2}), "last: expected nats, at least 1 token, and bytes");
  refuses("{\"length\": 512}", "block: expected an integer from 0 to 1, but it is missing");
}

}  // namespace
}  // namespace sextant::lab
