// The results of one method over all its seeds: means with 95 % intervals, the change of its loss
// past the training length, and the verdict on it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/result/interval.h"
#include "sextant/lab/result/result.h"

namespace sextant::lab {

// The measures of AtLength, means over seeds.
struct LossMeans {
  int64_t length = 0;
  MeanInterval loss, sliding, loss_change, sliding_change;
};

// The measure of AtDistance, mean over seeds.
struct AccuracyMean {
  int64_t length = 0, distance = 0;
  MeanInterval accuracy;
};

// The measures of AttentionAt at one length, means over layers and seeds.
struct AttentionMeans {
  int64_t length = 0;
  MeanInterval span, entropy;
  std::vector<double> at_distance;  // empty if not measured
};

// Thresholds of MethodResult::change, in nats per byte. XPOS, with +0.23, lies between the two.
// Seeds move a change by 0.001 where a method holds and by 0.1 where it breaks.
inline constexpr double kHoldsBelow = 0.1;
inline constexpr double kBreaksAbove = 0.25;

// A method that tags fewer marks right does not tell direction: one of two cues is right half of
// the time.
inline constexpr double kTellsDirectionFrom = 0.75;

// A method with a lower retrieval accuracy counts as one that does not find distant pairs.
inline constexpr double kRetrievesFrom = 0.5;

// kNotLearned: not decided, as a method that has learned nothing has nothing to lose (findings.h).
enum class Verdict { kHolds, kDrifts, kBreaks, kDiverged, kNotLearned };
// "holds", "drifts", "breaks", "diverged", "not learned"
const char* name(Verdict verdict);

// Whether a task was learned; kUnknown if it was not tested or there is nothing to compare with.
enum class Learned { kUnknown, kYes, kNo };

// The losses of one seed at L.
struct TrainedLoss {
  uint64_t seed = 0;
  AtLength at;
};

struct MethodResult {
  std::string label;
  std::string base;              // label of the method whose weights it is tested with, or empty
  bool is_base = false;          // other methods are tested with its weights, as stretches
  int64_t drop_channels = 0;     // channels of the added vector that were zero in the test
  std::vector<ArmResult> seeds;  // on text, without the diverged ones
  std::vector<ArmResult> pairs;  // on the small task, without the diverged ones
  int64_t diverged = 0;          // number of diverged arms on text

  // Of `seeds`; empty without these.
  std::vector<LossMeans> losses;          // by length, in the order of the test
  std::vector<MeanInterval> loss_at;      // at the longest length, by bin of positions
  std::vector<MeanInterval> train_loss;   // by kTrainLossSteps steps
  std::vector<AttentionMeans> attention;  // at the training length and at the longest; or empty
  // Of `pairs`: by length and distance, in the order of the test.
  std::vector<AccuracyMean> accuracies;

  // Sliding loss at the longest length minus that at L. For a method with a base, the base's loss
  // at L is subtracted, so the cost of a stretch on short sequences counts, too.
  MeanInterval change;
  std::vector<MeanInterval> changes;  // the same at each length, in the order of the test
  // The losses from which changes are counted, its own or those of its base, by seed.
  std::vector<TrainedLoss> from;
  // With dropped channels: sliding loss at L minus that of the base at L.
  std::optional<MeanInterval> lost;
  Verdict verdict = Verdict::kDiverged;  // by `change`; kDiverged if no seed has a result

  // Set by judge() of findings.h, which may also turn `verdict` into kNotLearned.
  Learned text = Learned::kUnknown, retrieval = Learned::kUnknown;
  bool is_reference = false;  // of learning: the method `none`
  // Sliding loss at L minus that of the reference; nullopt for the reference itself, for methods
  // with a base, and without a reference.
  std::optional<MeanInterval> to_reference;

  // Throws Error if this length was not tested.
  const LossMeans& losses_at(int64_t length) const;
  // nullopt if it was not tested at this length and distance.
  std::optional<MeanInterval> accuracy_at(int64_t length, int64_t distance) const;
  // The mean over all distances at this length.
  std::optional<MeanInterval> mean_accuracy_at(int64_t length) const;
};

// Whether it was measured how distance explains the products of the vectors that it adds to the
// input. Methods with a base have the products of the base.
bool has_products(const MethodResult& method);

// The mean of a share over the heads of a layer, or of all layers. Heads whose products do not vary
// are left out; NaN if there is no other.
double mean_share(const ArmResult& arm, double HeadProducts::*share,
                  std::optional<int64_t> layer = {});

// Groups results by label, in the order of each label's first arm. Arms without a result are left
// out.
std::vector<MethodResult> by_method(std::span<const ArmResult> results, const Settings& settings);

}  // namespace sextant::lab
