#include "sextant/lab/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/base/hypot.h"

namespace sextant::lab {
namespace {

// A measure of one arm: its mean, and the values behind the mean, which results of older versions
// lack: losses of blocks, or answers to sequences.
struct Sample {
  Measured::ComparedOver over = Measured::ComparedOver::kBlocks;
  Mean mean = {};
  std::vector<double> blocks = {};
  std::string right = {};
  bool has_error = true;  // false: mean.error is unknown
};

const AtLength* at_length(const ArmResult& result, int64_t length) {
  const auto at = std::ranges::find(result.lengths, length, &AtLength::length);
  return at == result.lengths.end() ? nullptr : &*at;
}

const AtLength& at_trained(const ArmResult& result, const Settings& settings) {
  const AtLength* const at = at_length(result, settings.training.length);
  if (at == nullptr) fail("compare: the training length was not tested");
  return *at;
}

// The sliding loss at a length minus that at L of the method whose weights are used.
std::optional<Sample> change_to(int64_t length, const MethodResult& method,
                                const ArmResult& result) {
  const AtLength* const at = at_length(result, length);
  const auto from = std::ranges::find(method.from, result.arm.seed, &TrainedLoss::seed);
  if (at == nullptr || from == method.from.end()) return {};
  Sample sample{.mean = at->sliding_change,
                .blocks = paired_differences(at->sliding_blocks, from->at.sliding_blocks)};
  if (method.base.empty()) return sample;
  sample.mean = {.value = at->sliding.value - from->at.sliding.value,
                 .error = hypot(at->sliding.error, from->at.sliding.error)};
  return sample;
}

std::optional<Sample> sliding_at(const AtLength* at) {
  if (at == nullptr) return {};
  return Sample{.mean = at->sliding, .blocks = at->sliding_blocks};
}

// The share of attention at distances from `distance` on, of bins 0, 1, 2 to 3, 4 to 7, ...: those
// that begin there or later.
double share_from(const std::vector<double>& at_distance, int64_t distance) {
  double share = 0;
  for (size_t bin = 1; bin < at_distance.size(); ++bin)
    if (int64_t{1} << (bin - 1) >= distance) share += at_distance[bin];
  return share;
}

std::optional<Sample> without_error(double value) {
  if (std::isnan(value)) return {};
  return Sample{.mean = {.value = value}, .has_error = false};
}

std::optional<Sample> attention_from(int64_t distance, int64_t length, const ArmResult& result) {
  // Other distances lie within a bin.
  if (distance < 1 || !std::has_single_bit(static_cast<uint64_t>(distance))) return {};
  double sum = 0, layers = 0;
  for (const AttentionAt& at : result.attention) {
    if (at.length != length || at.at_distance.empty()) continue;
    sum += share_from(at.at_distance, distance);
    ++layers;
  }
  return without_error(sum / layers);
}

std::optional<Sample> far_sample(const ArmResult& result, const Settings& settings) {
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

// Over the marks of all distances in sequences of L.
std::optional<Sample> direction_sample(const ArmResult& result, const Settings& settings) {
  Sample sample{.over = Measured::ComparedOver::kSequences};
  double count = 0, squares = 0;
  for (const AtDistance& at : result.retrieval) {
    if (at.length != settings.retrieval.length) continue;
    sample.mean.value += at.accuracy.value;
    squares += at.accuracy.error * at.accuracy.error;
    sample.right += at.right;
    ++count;
  }
  if (count == 0) return {};
  sample.mean = {.value = sample.mean.value / count, .error = std::sqrt(squares) / count};
  return sample;
}

// The measure of one arm; nullopt if it was not measured.
std::optional<Sample> sample_of(Measure measure, const MethodResult& method,
                                const ArmResult& result, const Settings& settings) {
  const int64_t trained = settings.training.length, longest = settings.test.longest();
  const auto change = [&](int64_t length) { return change_to(length, method, result); };
  const auto change_past = [&](int64_t length) {
    return length > trained ? change(length) : std::nullopt;
  };
  if (measure == Measure::kChange) return change(longest);
  if (measure == Measure::kChangeHalf) return change_past(longest / 2);
  if (measure == Measure::kChangeQuarter) return change_past(longest / 4);
  if (measure == Measure::kTrained) return sliding_at(&at_trained(result, settings));
  if (measure == Measure::kCost) return method.base.empty() ? std::nullopt : change(trained);
  if (measure == Measure::kLongest) return sliding_at(at_length(result, longest));
  if (measure == Measure::kAttention) return attention_from(trained / 4, trained, result);
  if (measure == Measure::kAttentionPast) return attention_from(trained, longest, result);
  if (measure == Measure::kFar) return far_sample(result, settings);
  if (measure == Measure::kDirection) return direction_sample(result, settings);
  return without_error(mean_share(result, &HeadProducts::trained));  // over layers and heads
}

struct MeasureKind {
  Measure measure;
  const char* key;
  const char* name;
  Needs needs;
  // The results of the task.
  std::vector<ArmResult> MethodResult::*arms;
};
constexpr auto kSeeds = &MethodResult::seeds, kPairs = &MethodResult::pairs;
constexpr MeasureKind kKinds[] = {
    {Measure::kChange, "change", "change of the sliding loss", Needs::kAll, kSeeds},
    {Measure::kChangeHalf, "change_half",
     "change of the sliding loss up to half the longest length", Needs::kAll, kSeeds},
    {Measure::kChangeQuarter, "change_quarter",
     "change of the sliding loss up to a quarter of the longest length", Needs::kAll, kSeeds},
    {Measure::kTrained, "trained", "sliding loss at the training length", Needs::kAny, kSeeds},
    {Measure::kCost, "cost", "cost at the training length to the method that was trained",
     Needs::kAll, kSeeds},
    {Measure::kLongest, "longest", "sliding loss at the longest length", Needs::kAll, kSeeds},
    {Measure::kAttention, "attention", "share of attention at L/4 or further back", Needs::kAll,
     kSeeds},
    {Measure::kAttentionPast, "attention_past",
     "share of attention beyond L in the longest windows", Needs::kAll, kSeeds},
    {Measure::kProducts, "products",
     "share of the variance of p_i W_q W_k^T p_j that distance explains", Needs::kAll, kSeeds},
    {Measure::kFar, "far", "share of pairs found at the beginning of the longest text", Needs::kAll,
     kPairs},
    {Measure::kDirection, "direction", "share of marks tagged right", Needs::kAny, kPairs},
};

constexpr auto kMeasures = [] {
  std::array<Measure, std::size(kKinds)> all{};
  for (size_t n = 0; n < all.size(); ++n) all[n] = kKinds[n].measure;
  return all;
}();

const MeasureKind& kind_of(Measure measure) {
  return *std::ranges::find(kKinds, measure, &MeasureKind::measure);
}

const std::vector<ArmResult>& arms_of(const MeasureKind& kind, const MethodResult& method) {
  return method.*kind.arms;
}

const ArmResult* of_seed(const std::vector<ArmResult>& arms, uint64_t seed) {
  const auto found =
      std::ranges::find_if(arms, [&](const ArmResult& result) { return result.arm.seed == seed; });
  return found == arms.end() ? nullptr : &*found;
}

Measured of_one_seed(const Sample& sample) {
  if (sample.blocks.size() >= 2)
    return {.interval = interval95(sample.blocks),
            .over = Measured::ComparedOver::kBlocks,
            .count = sample.blocks.size()};
  return {.interval = {.mean = sample.mean.value, .half = kNormal95 * sample.mean.error},
          .over = sample.over,
          .count = sample.right.size()};
}

Measured of_one_seed(const Sample& sample, const Sample& other) {
  if (const auto blocks = paired_differences(sample.blocks, other.blocks); blocks.size() >= 2)
    return {.interval = interval95(blocks),
            .over = Measured::ComparedOver::kBlocks,
            .count = blocks.size()};
  if (!sample.right.empty() && sample.right.size() == other.right.size())
    return {.interval = difference95_of_shares(sample.right, other.right),
            .over = sample.over,
            .count = sample.right.size()};
  return {.interval = {.mean = sample.mean.value - other.mean.value,
                       .half = kNormal95 * hypot(sample.mean.error, other.mean.error)},
          .over = sample.over,
          .paired = false};
}

}  // namespace

std::span<const Measure> measures() { return kMeasures; }

const char* name(Measure measure) { return kind_of(measure).name; }

const char* key(Measure measure) { return kind_of(measure).key; }

Needs needs(Measure measure) { return kind_of(measure).needs; }

bool is_on_retrieval(Measure measure) { return kind_of(measure).arms == kPairs; }

bool is_measured(Measure measure, const MethodResult& method) {
  return !arms_of(kind_of(measure), method).empty();
}

std::string words(const Measured& measured) {
  const bool sequences = measured.over == Measured::ComparedOver::kSequences;
  if (!measured.paired)
    return fmt::format("not paired: one result is of a version that kept no {}",
                       sequences ? "answers" : "blocks");
  if (measured.over == Measured::ComparedOver::kSeeds)
    return fmt::format("over {} seeds", measured.count);
  if (measured.count == 0) return sequences ? "over the test texts" : "over the test text";
  return fmt::format("over {} {}", measured.count, sequences ? "texts" : "blocks");
}

std::optional<Measured> measured(Measure measure, const MethodResult& method,
                                 const MethodResult* other, const Settings& settings) {
  const MeasureKind& kind = kind_of(measure);
  std::vector<double> values;
  std::optional<Measured> last;
  for (const ArmResult& seed : arms_of(kind, method)) {
    const std::optional<Sample> sample = sample_of(measure, method, seed, settings);
    if (!sample) continue;
    if (other == nullptr) {
      values.push_back(sample->mean.value);
      if (sample->has_error) last = of_one_seed(*sample);
      continue;
    }
    const ArmResult* const theirs = of_seed(arms_of(kind, *other), seed.arm.seed);
    if (theirs == nullptr) continue;
    const std::optional<Sample> minus = sample_of(measure, *other, *theirs, settings);
    if (!minus) continue;
    values.push_back(sample->mean.value - minus->mean.value);
    if (sample->has_error) last = of_one_seed(*sample, *minus);
  }
  if (values.size() < 2) return last;
  return Measured{.interval = interval95(values), .count = values.size()};
}

}  // namespace sextant::lab
