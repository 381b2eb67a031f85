// One measure of one method, or its difference between two methods, with a 95 % interval.
//
// Two methods are compared pairwise: seed by seed if both have several, because the trainings of a
// seed share their initial weights and their batches; else block by block or sequence by sequence,
// because both were tested on the same data. Pairing removes the variation that seeds or sequences
// add to both methods, and this variation is large: two stretches of one model differ by 0.016 nats
// on blocks whose losses are spread over 0.5.
#pragma once

#include <optional>
#include <string>

#include "sextant/lab/report/interval.h"
#include "sextant/lab/report/method_result.h"

namespace sextant::lab {

enum class Measure {
  kChange,   // change of the sliding loss, from L to the longest length
  kTrained,  // sliding loss at L
  kLongest,  // sliding loss at the longest length
  kFar,      // retrieval accuracy for pairs at the beginning of the longest sequence
};
const char* name(Measure measure);

// Returns whether the results of `method` contain this measure.
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

// Returns the measure of `method`, minus that of `other` if `other` is not null. Returns nullopt if
// the two have no seed in common. Throws Error if the training length was not tested.
std::optional<Measured> measured(Measure measure, const MethodResult& method,
                                 const MethodResult* other, const Settings& settings);

}  // namespace sextant::lab
