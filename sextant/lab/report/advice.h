// The answer of a survey in words: which encoding to train with, and how to stretch a trained one.
//
// Both answers follow one rule. The candidates are the methods that hold (method_result.h) and find
// at least half of the pairs at the beginning of the longest sequence. They are ranked by sliding
// loss at the longest length (findings.h), and the candidates that are not significantly worse than
// the first are named with it (compare.h). If no method is a candidate, the answer says so and
// names the nearest method. Methods that have not learned a task are left out, and a sentence says
// so (findings.h). The answer is derived from the numbers and says how many seeds they rest on.
//
// `sextant extend` follows another rule (stretch_candidates.h). It measures no retrieval, so it
// excludes forgetting methods by their kind. It also counts the loss that a stretch costs at the
// training length L, because one model goes on to serve short sequences. Encodings that were
// trained separately have no common loss at L; the cost of a stretch at L is in the table of the
// stretches.
#pragma once

#include <cstddef>
#include <string>

#include "sextant/lab/report/findings.h"

namespace sextant::lab {

struct Advice {
  std::string train;    // "**Train with t5**: ..."; empty if fewer than two encodings were trained
  std::string stretch;  // "**Stretch a trained rope with rerope**: ...", a sentence for each method
                        // whose weights other methods read; empty if there is none
  std::string details;  // the rule, the ranking and its limits; empty without an answer
  size_t seeds = 0;     // the smallest number of seeds of any method

  std::string answer() const;  // train and stretch, one paragraph each
};

// Returns an empty Advice if there is no ranking, see findings.h.
Advice advice(const Findings& findings);

// Plain text: the answer with one sentence per line, then the details.
std::string advice_text(const Advice& advice);

}  // namespace sextant::lab
