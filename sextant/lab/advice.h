// What to do with what a survey found, in words: which encoding to train with, how to stretch what one has.
//
// The rule, the same for both: of those that hold (table.h) and find at least half of the pairs at the beginning of
// the longest text, the one with the lowest sliding loss there, and with
// it those whose loss is not to be told apart from that one's (compare.h). If none does both, that is said, with who
// comes nearest. It is derived from the numbers and says how many seeds they rest on.
//
// Extend's rule is another (ways.h): here retrieval says who forgets, whatever kind it is of; and encodings that
// were trained each for itself have no loss at L in common that one of them could make worse: what a way to read
// loses there stands in its table.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "sextant/lab/table.h"

namespace sextant::lab {

struct Advice {
  std::string train;  // "Train with t5: ..."; empty if fewer than two encodings were trained
  std::string
      stretch;  // "Stretch rope with rerope: ..."; empty if no weights were read in other ways
  std::string trust;  // how far this goes; empty if both are
  size_t seeds = 0;   // the fewest of any method
};

// Empty for trainings of fewer than kEnoughBytes (claims.h): they have learned too little to lose anything.
Advice advice(std::span<const MethodResult> methods, const Settings& settings);

std::string advice_text(const Advice& advice);

}  // namespace sextant::lab
