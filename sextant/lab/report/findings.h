// Everything that a survey's tables, charts, claims, advice and files state, derived once from the
// results of its arms. They take these findings and only print them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/claims.h"
#include "sextant/lab/report/method_result.h"
#include "sextant/lab/report/ranking.h"
#include "sextant/lab/report/result.h"

namespace sextant::lab {

struct Findings {
  Settings settings;
  std::vector<ArmResult> results;     // as given, the diverged arms included
  std::vector<MethodResult> methods;  // the results grouped by method, with means over seeds
  std::vector<Ranking> rankings;      // one for each question that advice.h answers
  std::vector<CheckedClaim> claims;
  size_t fewest_seeds = 0;      // of the methods that have any on text
  bool has_intervals = false;   // some method has several seeds
  double bytes_per_second = 0;  // of a worker that trains on text; 0 if nothing was trained
};

Findings findings_of(std::span<const ArmResult> results, const Settings& settings);

}  // namespace sextant::lab
