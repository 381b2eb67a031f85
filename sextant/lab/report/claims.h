// Claims of the literature, held against the measurements of a survey.
//
// A claim is an inequality between measures of one or two methods, with its source. At the scale of
// a survey it holds, fails or stays undecided; each is a finding, and its numbers stand beside it.
// Nothing is tuned to make one hold.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sextant/lab/report/table.h"

namespace sextant::lab {

enum class Finding { kHolds, kFails, kUndecided };

struct ClaimFound {
  std::string claim;   // "ALiBi holds past the training length"
  std::string source;  // "Press et al. 2022 (arXiv 2108.12409)"
  Finding finding = Finding::kUndecided;
  std::string measure;  // "change of the sliding loss of alibi"
  std::string value;    // "+0.009 ± 0.004", with half of the 95 % interval
  std::string over;     // "over 64 blocks": the sample of that interval
  std::string bound;    // "below 0.1": the claimed value
};

// Trainings on fewer bytes say nothing: a break shows only once a model has learned something to
// lose. Sinusoidal positions lose 0.2 nats at 8 L after 250 thousand bytes, and 1.3 after 800
// thousand.
inline constexpr int64_t kEnoughBytes = 400'000;

// The claims whose methods are all in the survey (under their plain names), in a fixed order; none
// below kEnoughBytes.
//
// A measure x, or the difference of two methods, is compared with a bound c by its 95 % interval
// (compare.h): over seeds where there are two or more, else over the blocks of the test text or the
// sequences of pairs, which does not show how much another seed would move it. It is undecided
// where the interval has c inside.
std::vector<ClaimFound> claims(std::span<const MethodResult> methods, const Settings& settings);

// "holds", "fails", "undecided"
const char* name(Finding finding);

// Plain text, a claim and its numbers in two lines each; empty if there is none.
std::string claims_text(std::span<const ClaimFound> claims);

}  // namespace sextant::lab
