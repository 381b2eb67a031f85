#include "sextant/lab/report/ranking.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sextant/lab/report/claims.h"

namespace sextant::lab {
namespace {

Candidate candidate_of(const MethodResult& method, const Settings& settings) {
  Candidate candidate{.label = method.label,
                      .trained_loss = method.losses_at(settings.training.length).sliding.mean,
                      .loss = method.losses_at(settings.test.longest()).sliding.mean,
                      .accuracy = {},
                      .holds = method.verdict == Verdict::kHolds};
  const RetrievalOptions& options = settings.retrieval;
  if (options.steps == 0) return candidate;
  const auto accuracy =
      method.accuracy_at(options.longest(), far_distance(options.longest(), options));
  if (accuracy) candidate.accuracy = accuracy->mean;
  return candidate;
}

std::vector<Candidate> only(const std::vector<Candidate>& all, const auto& wanted) {
  std::vector<Candidate> result;
  std::ranges::copy_if(all, std::back_inserter(result), wanted);
  return result;
}

std::vector<Tie> ties_of(const std::vector<Candidate>& chosen,
                         std::span<const MethodResult> methods, const Settings& settings) {
  const auto method_of = [&](const Candidate& candidate) {
    return std::ranges::find(methods, candidate.label, &MethodResult::label);
  };
  std::vector<Tie> ties;
  if (chosen.empty()) return ties;
  const MethodResult& first = *method_of(chosen.front());
  for (const Candidate& candidate : std::span(chosen).subspan(1)) {
    const std::optional<Measured> behind =
        measured(Measure::kLongest, *method_of(candidate), &first, settings);
    if (!behind || behind->interval.low() > 0) continue;
    ties.push_back({.label = candidate.label, .behind = *behind});
  }
  return ties;
}

// The ranking of the methods with this base, or of those without one if it is empty.
Ranking ranking_of(const std::string& base, std::span<const MethodResult> methods,
                   const Settings& settings) {
  Ranking ranking;
  for (const MethodResult& method : methods) {
    if (method.seeds.empty() || method.base != base || method.drop_channels > 0) continue;
    ranking.all.push_back(candidate_of(method, settings));
  }
  std::ranges::stable_sort(ranking.all, {}, &Candidate::loss);
  ranking.holding = only(ranking.all, [](const Candidate& one) { return one.holds; });
  ranking.retrieving = only(ranking.holding, [](const Candidate& one) { return one.retrieves(); });
  ranking.ties = ties_of(ranking.chosen(), methods, settings);
  return ranking;
}

}  // namespace

std::vector<Ranking> rankings(std::span<const MethodResult> methods, const Settings& settings) {
  std::vector<Ranking> all;
  if (settings.training.bytes < kEnoughBytes) return all;
  Ranking trained = ranking_of("", methods, settings);
  if (trained.all.size() >= 2) all.push_back(std::move(trained));
  for (const MethodResult& base : methods) {
    if (!base.is_base || base.seeds.empty()) continue;
    Ranking stretches = ranking_of(base.label, methods, settings);
    if (stretches.all.empty()) continue;
    stretches.base = candidate_of(base, settings);
    all.push_back(std::move(stretches));
  }
  return all;
}

}  // namespace sextant::lab
