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

// Fills the lists of methods that are left out, and returns the others.
std::vector<const MethodResult*> learned_of(std::vector<const MethodResult*> methods,
                                            Ranking& ranking) {
  const auto leave_out = [&](Learned MethodResult::*task, std::vector<std::string>& labels) {
    std::erase_if(methods, [&](const MethodResult* method) {
      if (method->*task != Learned::kNo) return false;
      if (!method->is_reference) labels.push_back(method->label);
      return true;
    });
  };
  leave_out(&MethodResult::text, ranking.without_text);
  const bool is_tested = std::ranges::any_of(
      methods, [](const auto* method) { return method->retrieval != Learned::kUnknown; });
  ranking.ignores_retrieval = is_tested && std::ranges::none_of(methods, [](const auto* method) {
                                return method->retrieval == Learned::kYes;
                              });
  if (!ranking.ignores_retrieval) {
    leave_out(&MethodResult::retrieval, ranking.without_retrieval);
  }
  return methods;
}

// The ranking of the methods with this base, or of those without one if it is empty.
Ranking ranking_of(const std::string& base, std::span<const MethodResult> methods,
                   const Settings& settings) {
  Ranking ranking;
  std::vector<const MethodResult*> compared;
  for (const MethodResult& method : methods) {
    if (method.seeds.empty() || method.base != base || method.drop_channels > 0) continue;
    compared.push_back(&method);
  }
  for (const MethodResult* const method : learned_of(std::move(compared), ranking)) {
    ranking.all.push_back(candidate_of(*method, settings));
    if (ranking.ignores_retrieval) ranking.all.back().accuracy.reset();
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
  const auto trained = std::ranges::count_if(methods, [](const MethodResult& method) {
    return !method.seeds.empty() && method.base.empty();
  });
  if (trained >= 2) all.push_back(ranking_of("", methods, settings));
  for (const MethodResult& base : methods) {
    if (!base.is_base || base.seeds.empty()) continue;
    const bool is_stretched = std::ranges::any_of(methods, [&](const MethodResult& method) {
      return method.base == base.label && !method.seeds.empty();
    });
    if (!is_stretched) continue;
    Ranking stretches = ranking_of(base.label, methods, settings);
    stretches.base = candidate_of(base, settings);
    all.push_back(std::move(stretches));
  }
  return all;
}

}  // namespace sextant::lab
