// The answer of a survey in words: which encoding to train with, how to stretch a trained one.
//
// Both follow one rule. The candidates are the methods that hold (table.h) and find at least half
// of the pairs at the beginning of the longest sequence. They are ranked by sliding loss at the
// longest length, and those not significantly worse than the first are named with it (compare.h).
// Where no method is a candidate the answer says so and names the nearest. It is derived from the
// numbers and says how many seeds they rest on.
//
// Extend follows another rule (ways.h): nothing was retrieved there, so methods that forget are
// known by their kind, and the loss that a stretch costs at L counts, since one model goes on to
// serve short sequences. Encodings that were each trained for themselves have no loss at L in
// common; the cost of a stretch at L is in its table.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "sextant/lab/report/table.h"

namespace sextant::lab {

struct Advice {
  std::string train;    // "**Train with t5**: ..."; empty if fewer than two encodings were trained
  std::string stretch;  // "**Stretch a trained rope with rerope**: ...", a sentence for each method
                        // whose weights others read; empty if there is none
  std::string details;  // the rule, a list of its numbers, how far to trust it; empty if both are
  size_t seeds = 0;     // the fewest of any method

  std::string answer() const;  // train and stretch, a paragraph each
};

// Empty for trainings of fewer than kEnoughBytes (claims.h): they have learned too little to lose.
Advice advice(std::span<const MethodResult> methods, const Settings& settings);

// Plain text: the answer, a sentence a line, then the details.
std::string advice_text(const Advice& advice);

}  // namespace sextant::lab
