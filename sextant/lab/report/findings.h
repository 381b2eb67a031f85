// Everything that a survey's tables, charts, claims, advice and files state, derived once from the
// results of its arms. They take these findings and only print them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "sextant/lab/data/bigram.h"
#include "sextant/lab/plan/same_arm.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/claims.h"
#include "sextant/lab/report/learned.h"
#include "sextant/lab/report/method_result.h"
#include "sextant/lab/report/ranking.h"
#include "sextant/lab/result/result.h"

namespace sextant::lab {

struct Findings {
  Settings settings;
  std::vector<ArmResult> results;     // as given, the diverged arms included
  std::vector<MethodResult> methods;  // the results grouped by method, with means over seeds
  std::vector<Ranking> rankings;      // one for each question that advice.h answers
  std::vector<CheckedClaim> claims;
  std::optional<LearningReference> reference;  // nullopt: unknown, see learned.h
  size_t fewest_seeds = 0;                     // of the methods that have any on text
  bool has_intervals = false;                  // some method has several seeds
  double bytes_per_second = 0;  // of a worker that trains on text; 0 if nothing was trained
};

// Facts beside the results, which a survey has and which are not stored in them.
struct Background {
  std::optional<BigramLoss> bigrams;  // of the survey's text
  OptionDefaults defaults;            // of the methods
};

Findings findings_of(std::span<const ArmResult> results, const Settings& settings,
                     const Background& background = {});

}  // namespace sextant::lab
