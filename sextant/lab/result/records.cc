#include "sextant/lab/result/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sextant/files/json_fields.h"

namespace sextant::lab {
namespace {

constexpr double kMost = std::numeric_limits<double>::max();

std::vector<double> numbers(const JsonFields& fields, const char* name, double low, size_t count) {
  std::vector<double> found = fields.optional_numbers(name, low, kMost);
  if (found.size() != count) fields.refuse(name, fmt::format("{} numbers", count));
  return found;
}

}  // namespace

void for_each_record(const std::string& text, const std::string& where,
                     const std::function<void(const JsonFields&)>& take) {
  std::istringstream lines(text);
  std::string line;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    const std::string here = fmt::format("{}: line {}", where, number);
    const nlohmann::json record = checked_json(line, here);
    take(JsonFields(record, here));
  }
}

LossRecord loss_record(const JsonFields& fields, const std::vector<int64_t>& lengths,
                       int64_t blocks) {
  LossRecord record;
  record.length = fields.integer("length", 1, std::numeric_limits<int64_t>::max());
  if (std::ranges::find(lengths, record.length) == lengths.end()) {
    fields.refuse("length", fmt::format("one of {}", fmt::join(lengths, ", ")));
  }
  record.block = static_cast<size_t>(fields.integer("block", 0, blocks - 1));
  record.nats = fields.optional_numbers("nats", -kMost, kMost);
  if (record.nats.empty()) fields.refuse("nats", "numbers");
  record.tokens = numbers(fields, "tokens", 1, record.nats.size());
  const std::vector<double> last = numbers(fields, "last", 0, 3);
  if (last[1] < 1) fields.refuse("last", "nats, at least 1 token, and bytes");
  record.last_nats = last[0];
  record.last_tokens = last[1];
  record.last_bytes = last[2];
  record.seconds = fields.optional_number("seconds", 0, kMost).value_or(0);
  return record;
}

}  // namespace sextant::lab
