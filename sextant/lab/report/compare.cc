#include "sextant/lab/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

const std::vector<ArmResult>& arms_of(Measure measure, const MethodResult& method) {
  return measure == Measure::kFar ? method.pairs : method.seeds;
}

// A measure of one arm: its mean, and the values behind the mean, which results of older versions
// lack: losses of blocks, or answers to sequences.
struct Sample {
  Measured::ComparedOver over = Measured::ComparedOver::kBlocks;
  Mean mean;
  std::vector<double> blocks;
  std::string right;
};

const AtLength& at_trained(const ArmResult& result, const Settings& settings) {
  const auto at = std::ranges::find(result.lengths, settings.training.length, &AtLength::length);
  if (at == result.lengths.end()) fail("compare: the training length was not tested");
  return *at;
}

std::vector<double> differences(std::span<const double> values, std::span<const double> minus) {
  if (values.size() != minus.size()) return {};
  std::vector<double> result;
  for (size_t n = 0; n < values.size(); ++n) result.push_back(values[n] - minus[n]);
  return result;
}

std::optional<Sample> sample_of(Measure measure, const ArmResult& result,
                                const Settings& settings) {
  switch (measure) {
    case Measure::kChange: {
      const AtLength& longest = result.lengths.back();
      return Sample{.mean = longest.sliding_change,
                    .blocks = differences(longest.sliding_blocks,
                                          at_trained(result, settings).sliding_blocks)};
    }
    case Measure::kTrained: {
      const AtLength& trained = at_trained(result, settings);
      return Sample{.mean = trained.sliding, .blocks = trained.sliding_blocks};
    }
    case Measure::kLongest:
      return Sample{.mean = result.lengths.back().sliding,
                    .blocks = result.lengths.back().sliding_blocks};
    case Measure::kFar:
      break;
  }
  const int64_t length = settings.retrieval.longest();
  const int64_t distance = far_distance(length, settings.retrieval);
  for (const AtDistance& at : result.retrieval) {
    if (at.length == length && at.distance == distance) {
      return Sample{
          .over = Measured::ComparedOver::kSequences, .mean = at.accuracy, .right = at.right};
    }
  }
  return {};
}

const ArmResult* of_seed(const std::vector<ArmResult>& arms, uint64_t seed) {
  const auto found =
      std::ranges::find_if(arms, [&](const ArmResult& result) { return result.arm.seed == seed; });
  return found == arms.end() ? nullptr : &*found;
}

Measured of_one_seed(const Sample& sample) {
  if (sample.blocks.size() >= 2) {
    return {.interval = interval95(sample.blocks),
            .over = Measured::ComparedOver::kBlocks,
            .count = sample.blocks.size()};
  }
  return {.interval = {.mean = sample.mean.value, .half = kNormal95 * sample.mean.error},
          .over = sample.over,
          .count = sample.right.size()};
}

Measured of_one_seed(const Sample& sample, const Sample& other) {
  if (const auto blocks = differences(sample.blocks, other.blocks); blocks.size() >= 2) {
    return {.interval = interval95(blocks),
            .over = Measured::ComparedOver::kBlocks,
            .count = blocks.size()};
  }
  if (!sample.right.empty() && sample.right.size() == other.right.size()) {
    return {.interval = difference95_of_shares(sample.right, other.right),
            .over = sample.over,
            .count = sample.right.size()};
  }
  return {.interval = {.mean = sample.mean.value - other.mean.value,
                       .half = kNormal95 * std::hypot(sample.mean.error, other.mean.error)},
          .over = sample.over,
          .paired = false};
}

}  // namespace

const char* name(Measure measure) {
  switch (measure) {
    case Measure::kChange:
      return "change of the sliding loss";
    case Measure::kTrained:
      return "sliding loss at the training length";
    case Measure::kLongest:
      return "sliding loss at the longest length";
    case Measure::kFar:
      break;
  }
  return "share of pairs found at the beginning of the longest text";
}

bool is_measured(Measure measure, const MethodResult& method) {
  return !arms_of(measure, method).empty();
}

std::string words(const Measured& measured) {
  const bool sequences = measured.over == Measured::ComparedOver::kSequences;
  if (!measured.paired) {
    return fmt::format("not paired: one result is of a version that kept no {}",
                       sequences ? "answers" : "blocks");
  }
  if (measured.over == Measured::ComparedOver::kSeeds) {
    return fmt::format("over {} seeds", measured.count);
  }
  if (measured.count == 0) return sequences ? "over the test texts" : "over the test text";
  return fmt::format("over {} {}", measured.count, sequences ? "texts" : "blocks");
}

std::optional<Measured> measured(Measure measure, const MethodResult& method,
                                 const MethodResult* other, const Settings& settings) {
  std::vector<double> values;
  std::optional<Measured> last;
  for (const ArmResult& seed : arms_of(measure, method)) {
    const std::optional<Sample> sample = sample_of(measure, seed, settings);
    if (!sample) continue;
    if (other == nullptr) {
      values.push_back(sample->mean.value);
      last = of_one_seed(*sample);
      continue;
    }
    const ArmResult* const theirs = of_seed(arms_of(measure, *other), seed.arm.seed);
    if (theirs == nullptr) continue;
    const std::optional<Sample> minus = sample_of(measure, *theirs, settings);
    if (!minus) continue;
    values.push_back(sample->mean.value - minus->mean.value);
    last = of_one_seed(*sample, *minus);
  }
  if (values.size() < 2) return last;
  return Measured{.interval = interval95(values), .count = values.size()};
}

}  // namespace sextant::lab
