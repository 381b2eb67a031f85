// One measure of one method, or of two against each other, and how far to trust it.
//
// Two methods are compared pair by pair: seed by seed where both have several, for the trainings of
// a seed share their start and their batches; else block by block, or text by text, for both were
// tested on the same. What a seed or a text adds to both says nothing on their difference, and it
// is much: two ways to read one model differ by 0.016 nats on blocks whose losses are spread over
// 0.5.
#pragma once

#include <optional>

#include "sextant/lab/report/table.h"

namespace sextant::lab {

enum class Measure {
  kChange,   // of the sliding loss, from L to the longest length
  kTrained,  // sliding loss at L
  kLongest,  // sliding loss at the longest length
  kFar,      // share of pairs found at the beginning of the longest text
};
const char* name(Measure measure);

// Whether there is such a number of the method.
bool is_measured(Measure measure, const MethodResult& method);

struct Measured {
  MeanInterval interval;  // 95 %
  // What it is over. kBlocks, kTexts: of one seed; that says nothing of what another seed would do.
  // kApart: two methods of one seed of which one was measured by a version that kept no blocks: as
  // if they had been tested on different texts, which is too wide.
  enum class ComparedOver { kSeeds, kBlocks, kTexts, kApart } over = ComparedOver::kSeeds;
  size_t count = 0;  // so many
};
// "over 3 seeds", "over 64 blocks"
std::string words(const Measured& measured);

// Of `method`, minus that of `other` if it is not null. None if they have no seed in common. Throws
// Error if the training length was not tested.
std::optional<Measured> measured(Measure measure, const MethodResult& method,
                                 const MethodResult* other, const Settings& settings);

}  // namespace sextant::lab
