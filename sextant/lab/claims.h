// What the literature says, held against what a survey measured.
//
// A claim is an inequality between measures of one or two methods, with its source. At the scale of a survey it
// holds, fails or stays undecided; each is a finding, and the numbers stand beside it. Nothing is tuned to
// make one hold.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sextant/lab/table.h"

namespace sextant::lab {

enum class Finding { kHolds, kFails, kUndecided };

struct ClaimFound {
  std::string claim;   // "ALiBi holds past its training length"
  std::string source;  // "Press et al. 2022 (arXiv 2108.12409), figure 1"
  Finding finding = Finding::kUndecided;
  std::string
      numbers;  // "change of the sliding loss from 128 to 1024: +0.009 ± 0.004, held to be below 0.1"
};

// Trainings on fewer bytes say nothing: a break shows only once a model has learned something to lose.
// Sinusoidal positions lose 0.2 nats at 8 L after 250 thousand bytes, and 1.3 after 800 thousand.
inline constexpr int64_t kEnoughBytes = 400'000;

// None below kEnoughBytes. The claims whose methods are all in the survey (under their plain names), in a fixed order.
//
// A measure x, or the difference of two methods, is compared with a bound c by its 95 % interval, see compare.h:
// over seeds where there are two or more, else over the blocks of the test text, or the texts of pairs, which knows
// nothing of how much another seed would move it. Undecided: c lies inside.
std::vector<ClaimFound> claims(std::span<const MethodResult> methods, const Settings& settings);

// "holds", "fails", "undecided"
const char* name(Finding finding);

// Plain text, a claim and its numbers in two lines each; empty if there is none.
std::string claims_text(std::span<const ClaimFound> claims);

}  // namespace sextant::lab
