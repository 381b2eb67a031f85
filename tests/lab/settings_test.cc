#include "sextant/lab/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/error.h"
#include "sextant/lab/survey.h"

namespace sextant::lab {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

std::string error_of(const Settings& settings) {
  try {
    check(settings);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Settings, SurviveJson) {
  Settings settings;
  settings.training.learning_rate = 0.1 + 0.2;
  settings.test.lengths = {128, 1024};
  const json written = settings;
  EXPECT_EQ(json(json::parse(written.dump()).get<Settings>()), written);
}

TEST(Settings, AreReadStrictly) {
  json settings = Settings{};
  settings["training"]["momentum"] = 0.9;
  EXPECT_THAT(
      [&] { settings.get<Settings>(); },
      ThrowsMessage<Error>(HasSubstr("settings: training: momentum: expected no such field")));
}

TEST(Settings, SayWhichOneIsOutOfRange) {
  EXPECT_EQ(error_of({}), "");
  EXPECT_THAT(error_of({.training = {.length = 1}}), HasSubstr("training.length: expected 2 to"));
  EXPECT_THAT(error_of({.training = {.bytes = 1023}}),
              HasSubstr("training.bytes: expected 1024 to"));
  EXPECT_THAT(error_of({.training = {.learning_rate = NAN}}), HasSubstr("learning_rate: expected"));
  EXPECT_THAT(error_of({.test = {.lengths = {}}}), HasSubstr("expected at least one"));
  EXPECT_THAT(error_of({.test = {.lengths = {256, 128}}}), HasSubstr("each above the one before"));
  EXPECT_THAT(error_of({.test = {.lengths = {128, 128}}}), HasSubstr("each above the one before"));
  EXPECT_THAT(error_of({.test = {.lengths = {64, 256}}}),
              HasSubstr("expected the training length 128 among them, but got [64,256]"));
  EXPECT_THAT(error_of({.test = {.lengths = {128, 300}}}),
              HasSubstr("expected divisors of the longest, 300, but got 128"));
  EXPECT_THAT(error_of({.test = {.lengths = {32, 128}}}), HasSubstr("expected 64 to"));
  EXPECT_THAT(error_of({.test = {.bin = 100}}), HasSubstr("test.bin: expected a divisor"));
  EXPECT_THAT(error_of({.test = {.blocks = 1}}), HasSubstr("test.blocks: expected 2 to"));
  EXPECT_THAT(error_of({.model = {.heads = 3}}), HasSubstr("width: expected a multiple of heads"));
  EXPECT_THAT(error_of({.threads = 0}), HasSubstr("threads: expected 1 to"));
}

TEST(Settings, DifferencesAreNamedOneByOne) {
  Settings there, asked;
  asked.training.bytes = 400'000;
  asked.test.lengths = {128, 256};
  EXPECT_THAT(differences(there, asked),
              ElementsAre("test.lengths: [128,256,512,1024] there, [128,256] asked for",
                          "training.bytes: 800000 there, 400000 asked for"));
  EXPECT_THAT(differences(there, there), IsEmpty());
  EXPECT_THAT(differences(json{{"a", 1}}, json{{"b", 1}}),
              ElementsAre("a: 1 there, nothing asked for", "b: nothing there, 1 asked for"));
}

TEST(Arms, ComeSeedBySeed) {
  const std::vector<Arm> arms = make_arms({"rope", "alibi"}, 2, {});
  std::vector<std::string> names;
  for (const Arm& arm : arms) names.push_back(arm.name());
  EXPECT_THAT(names, ElementsAre("rope-0", "alibi-0", "rope-1", "alibi-1"));
}

TEST(Arms, TakeOptionsAsJsonOrWords) {
  const Arm arm = make_arms({"rope:base=1e6:dim=16:pairing=interleaved"}, 1, {}).at(0);
  EXPECT_EQ(arm.method, "rope");
  EXPECT_EQ(arm.label, "rope:base=1e6:dim=16:pairing=interleaved");
  EXPECT_EQ(json::parse(arm.options),
            json({{"base", 1e6}, {"dim", 16}, {"pairing", "interleaved"}}));
}

TEST(Arms, AWindowBringsWhatItIsAWindowOf) {
  const std::vector<Arm> arms = make_arms({"window", "window:of=alibi", "rope"}, 1, {});
  ASSERT_EQ(arms.size(), 4);
  EXPECT_EQ(arms[0].name(), "rope-0");
  EXPECT_EQ(arms[1].name(), "window-0");
  EXPECT_EQ(arms[1].weights_from, "rope-0");
  EXPECT_EQ(arms[2].name(), "alibi-0");
  EXPECT_EQ(arms[3].weights_from, "alibi-0");
}

TEST(Arms, WhatReadsATrainedRopeBringsIt) {
  const std::vector<Arm> arms = make_arms(
      {"rerope", "leaky-rerope", "self-extend", "xpos:weights=rope", "rerope:weights=own"}, 1, {});
  ASSERT_EQ(arms.size(), 6);
  EXPECT_EQ(arms[0].name(), "rope-0");
  for (size_t n = 1; n < 5; ++n) EXPECT_EQ(arms[n].weights_from, "rope-0");
  EXPECT_EQ(arms[5].weights_from, "");
  EXPECT_EQ(arms[5].options, "{}");
  // Of 1024: beyond 64, 960 distances must fit into 64; beyond 32, 992 into 96.
  EXPECT_EQ(json::parse(arms[2].options), json({{"factor", 15.0}}));
  EXPECT_EQ(json::parse(arms[3].options), json({{"group", 11}}));
  EXPECT_EQ(json::parse(arms[4].options), json::object());
}

TEST(Arms, RefuseWeightsOfWhatIsNotTrained) {
  EXPECT_THAT([] { make_arms({"rope:weights=window"}, 1, {}); },
              ThrowsMessage<Error>(
                  HasSubstr("weights: expected a method that is trained, but got window")));
  EXPECT_THAT(
      [] { make_arms({"rope:weights=3"}, 1, {}); },
      ThrowsMessage<Error>(HasSubstr("weights: expected a method's name or own, but got 3")));
}

TEST(Arms, LearnedPositionsReachTheLongestText) {
  const Arm arm = make_arms({"learned"}, 1, {}).at(0);
  EXPECT_EQ(json::parse(arm.options).at("rows"), 1024);
}

TEST(Arms, HaveAMemoryOfTheirOwnOrTheSurveys) {
  const std::vector<Arm> arms =
      make_arms({"rope", "rope:memory=0", "t5:memory=64", "window"}, 1, {}, /*memory=*/128);
  ASSERT_EQ(arms.size(), 4);
  EXPECT_EQ(arms[0].name(), "rope:memory=128-0");
  EXPECT_EQ(arms[0].memory, 128);
  EXPECT_EQ(arms[0].options, "{}");
  EXPECT_EQ(arms[1].name(), "rope:memory=0-0");
  EXPECT_EQ(arms[1].memory, 0);
  EXPECT_EQ(arms[2].memory, 64);
  EXPECT_EQ(arms[3].name(), "window:memory=128-0");
  EXPECT_EQ(arms[3].weights_from, "rope:memory=128-0");
  EXPECT_EQ(json(json(arms[2]).get<Arm>()), json(arms[2]));
}

TEST(Arms, TablesReachTheFarthestDistance) {
  const auto option = [](const char* method, const char* name, int64_t memory) {
    return json::parse(make_arms({method}, 1, {}, memory).at(0).options).at(name);
  };
  EXPECT_EQ(option("relative-key", "max_position_embeddings", 0), 1024);
  EXPECT_EQ(option("relative-key", "max_position_embeddings", 2000), 2128);
  EXPECT_EQ(option("tupe", "max_positions", 0), 1024);
}

TEST(Arms, SayWhatIsWrong) {
  EXPECT_THAT([] { make_arms({}, 1, {}); },
              ThrowsMessage<Error>(HasSubstr("expected at least one")));
  EXPECT_THAT([] { make_arms({"rope"}, 0, {}); },
              ThrowsMessage<Error>(HasSubstr("seeds: expected at least 1, but got 0")));
  EXPECT_THAT(
      [] { make_arms({"rope:memory=some"}, 1, {}); },
      ThrowsMessage<Error>(HasSubstr("memory: expected 0 to 1073741824, but got \"some\"")));
  EXPECT_THAT([] { make_arms({"rope"}, 1, {}, -1); },
              ThrowsMessage<Error>(HasSubstr("memory: expected at least 0, but got -1")));
  EXPECT_THAT([] { make_arms({"rope:base"}, 1, {}); },
              ThrowsMessage<Error>(HasSubstr("expected NAME:OPTION=VALUE, but got base")));
}

}  // namespace
}  // namespace sextant::lab
