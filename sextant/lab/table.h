// What a survey found, for people: mean and spread over seeds, method by method.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/result.h"
#include "sextant/lab/settings.h"

namespace sextant::lab {

// Over seeds. deviation: of the sample; absent for one seed.
struct Spread {
  double mean = 0;
  std::optional<double> deviation;
};
Spread spread(std::span<const double> values);

// All seeds of one method.
struct MethodResult {
  std::string label;
  std::vector<ArmResult> seeds;  // those that did not diverge
  int64_t diverged = 0;

  // Of `what` at lengths[index], over seeds.
  Spread at(Mean AtLength::*what, size_t index) const;
};

// In the order of the labels' first arms. Arms without a result are left out.
std::vector<MethodResult> by_method(std::span<const ArmResult> results);

// Nats per byte by which the last bytes of the longest windows may be worse than at L. Between the
// two: XPOS, +0.23. Seeds move a change by 0.001 where a method holds and by 0.1 where it breaks.
inline constexpr double kHoldsBelow = 0.1;
inline constexpr double kBreaksAbove = 0.25;

// "holds", "drifts" or "breaks", by how much worse the last bytes of the longest windows are than at L;
// "diverged".
std::string verdict(const MethodResult& method, const Settings& settings);

// Plain text: sliding loss and loss by length, with the change against L.
std::string table(std::span<const MethodResult> methods, const Settings& settings);

// "method,seed,measure,length,position,value": every number of every arm. position: the first of a bin;
// of "training", the bytes read.
std::string results_csv(std::span<const ArmResult> results, const Settings& settings);

// "17.1 thousand bytes per second and worker"; "" if nothing was trained.
std::string speed(std::span<const ArmResult> results, const Settings& settings);

// What one should know before believing such a table.
extern const char* const kCaveat;

}  // namespace sextant::lab
