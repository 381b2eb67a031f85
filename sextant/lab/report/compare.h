// One measure of one method, or its difference between two methods, with a 95 % interval.
//
// Two methods are compared pairwise: seed by seed if both have several, because the trainings of a
// seed share their initial weights and their batches; else block by block or sequence by sequence,
// because both were tested on the same data. Pairing removes the variation that seeds or sequences
// add to both methods, and this variation is large: two stretches of one model differ by 0.016 nats
// on blocks whose losses are spread over 0.5.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sextant/lab/report/method_result.h"
#include "sextant/lab/result/interval.h"

namespace sextant::lab {

enum class Measure {
  kChange,         // change of the sliding loss, from L to the longest length
  kChangeHalf,     // the same to half the longest length
  kChangeQuarter,  // the same to a quarter of it
  kTrained,        // sliding loss at L
  kCost,           // sliding loss at L, minus that of the method whose weights are used
  kLongest,        // sliding loss at the longest length
  kAttention,      // share of attention at distances of L/4 or more, in windows of L
  kAttentionPast,  // share of attention at distances of L or more, in the longest windows
  kProducts,       // share of the variance of p_i W_q W_k^T p_j that distance explains
  kFar,            // retrieval accuracy for pairs at the beginning of the longest sequence
  kDirection,      // accuracy of the direction task at L
};
std::span<const Measure> measures();
const char* name(Measure measure);  // "change of the sliding loss"
const char* key(Measure measure);   // "change", for programs

// The methods of a comparison that must have learned the task for it to decide anything: all of
// them, or one of the two, as in "binary is worse than sinusoidal at the training length".
enum class Needs { kAll, kAny };
Needs needs(Measure measure);
bool is_on_retrieval(Measure measure);

// Returns whether `method` has results of the task of this measure.
bool is_measured(Measure measure, const MethodResult& method);

struct Measured {
  MeanInterval interval;  // its half is never absent
  // The sample of the interval. kBlocks and kSequences: blocks of the test text or retrieval
  // sequences of one seed, which do not show how much another seed would differ.
  enum class ComparedOver { kSeeds, kBlocks, kSequences } over = ComparedOver::kSeeds;
  // false: two methods of one seed of which one was measured by a version that kept no blocks or
  // no answers; the interval is that of unpaired samples, which is too wide.
  bool paired = true;
  size_t count = 0;  // sample size; 0 if only its mean and standard error were kept
};
// "over 3 seeds", "over 64 blocks", "over the test text", "over 128 texts", "over the test texts"
std::string words(const Measured& measured);

// Returns the measure of `method`, minus that of `other` if `other` is not null. Changes count from
// the method whose weights are used, as in MethodResult::change. Returns nullopt if the two have no
// seed in common, if the length was not tested or is not above L, and for shares of attention of
// fewer than two seeds, whose error is unknown. Throws Error if the training length was not tested.
std::optional<Measured> measured(Measure measure, const MethodResult& method,
                                 const MethodResult* other, const Settings& settings);

}  // namespace sextant::lab
