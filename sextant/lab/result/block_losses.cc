#include "sextant/lab/result/block_losses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "sextant/files/json_fields.h"
#include "sextant/lab/result/interval.h"

namespace sextant::lab {
namespace {

// Rounds to 1e-6 to keep result files short; another seed changes a loss by at least 0.001.
std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = std::round(value * 1e6) / 1e6;
  return values;
}

constexpr double kMost = std::numeric_limits<double>::max();

std::vector<double> numbers(const JsonFields& fields, const char* name, double low, size_t count) {
  std::vector<double> found = fields.optional_numbers(name, low, kMost);
  if (found.size() != count) fields.refuse(name, fmt::format("{} numbers", count));
  return found;
}

// The mean of values[n] - reference[n] over blocks, and its standard error; both have at least 2.
Mean mean_difference(std::span<const double> values, std::span<const double> reference) {
  return mean_of_blocks(paired_differences(values, reference));
}

}  // namespace

Mean mean_of_blocks(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Mean mean;
  for (const double value : values) mean.value += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean.value) * (value - mean.value);
  mean.error = std::sqrt(squares / (count - 1) / count);
  return mean;
}

std::vector<AtLength> at_lengths(std::span<const int64_t> lengths,
                                 std::span<const BlockLosses> blocks, size_t reference) {
  std::vector<AtLength> found;
  for (size_t n = 0; n < lengths.size(); ++n) {
    const BlockLosses &here = blocks[n], &there = blocks[reference];
    found.push_back({.length = lengths[n],
                     .loss = mean_of_blocks(here.loss),
                     .sliding = mean_of_blocks(here.sliding),
                     .loss_change = mean_difference(here.loss, there.loss),
                     .sliding_change = mean_difference(here.sliding, there.sliding),
                     .sliding_blocks = rounded(here.sliding)});
  }
  return found;
}

Extension extension_of(ModelEvaluation model, const std::vector<CandidateLosses>& losses) {
  std::vector<int64_t> lengths;
  for (const AtLength& at : model.lengths) lengths.push_back(at.length);
  const auto trained =
      static_cast<size_t>(std::ranges::find(lengths, model.reference) - lengths.begin());
  const auto far = [](const CandidateLosses& candidate) {
    return mean_of_blocks(candidate.blocks.back().sliding).value;
  };
  const CandidateLosses& best = *std::ranges::min_element(losses, {}, far);
  const BlockLosses& plain = losses.front().blocks.at(trained);
  Extension extension{.model = std::move(model)};
  for (const CandidateLosses& each : losses) {
    MeasuredCandidate measured{.candidate = each.candidate,
                               .lengths = at_lengths(lengths, each.blocks, trained),
                               .by_position = each.by_position,
                               .seconds = each.seconds};
    for (size_t n = 0; n < lengths.size(); ++n) {
      measured.lengths[n].loss_change = mean_difference(each.blocks[n].loss, plain.loss);
      measured.lengths[n].sliding_change = mean_difference(each.blocks[n].sliding, plain.sliding);
    }
    measured.behind = mean_difference(each.blocks.back().sliding, best.blocks.back().sliding);
    extension.candidates.push_back(std::move(measured));
  }
  return extension;
}

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
  if (std::ranges::find(lengths, record.length) == lengths.end())
    fields.refuse("length", fmt::format("one of {}", fmt::join(lengths, ", ")));
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
