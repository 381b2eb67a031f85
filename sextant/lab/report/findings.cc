// Methods are divided into those that count and those that are left out, with the reason; the rest
// is ranked and judged against the reference, and methods with a base inherit what their training
// said.
#include "sextant/lab/report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace sextant::lab {
namespace {

size_t fewest_seeds(std::span<const MethodResult> methods) {
  size_t seeds = 0;
  for (const MethodResult& method : methods) {
    if (method.seeds.empty()) continue;
    seeds = seeds == 0 ? method.seeds.size() : std::min(seeds, method.seeds.size());
  }
  return seeds;
}

double bytes_per_second(std::span<const ArmResult> results, const Settings& settings) {
  double seconds = 0, bytes = 0;
  for (const ArmResult& result : results) {
    if (result.train_seconds <= 0 || result.diverged || !is_on_text(result.arm.task)) continue;
    seconds += result.train_seconds;
    const TrainingOptions training = training_of(settings, result.arm);
    bytes += static_cast<double>(training.steps() * training.batch * training.length);
  }
  return seconds > 0 ? bytes / seconds : 0;
}

Candidate candidate_of(const MethodResult& method, const Settings& settings) {
  Candidate candidate{.label = method.label,
                      .trained_loss = method.losses_at(settings.training.length).sliding.mean,
                      .loss = method.losses_at(settings.test.longest()).sliding.mean,
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
  if (!ranking.ignores_retrieval) leave_out(&MethodResult::retrieval, ranking.without_retrieval);
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

constexpr const char* kNone = "none";

Learned learned_if(bool learned) { return learned ? Learned::kYes : Learned::kNo; }

bool is_below(const MeanInterval& difference, double margin) {
  return difference.mean <= -margin && difference.high() < 0;
}

// The sliding loss at L minus that of bigrams: over seeds if there are several, else over blocks.
MeanInterval above_bigrams(const MethodResult& method, const BigramLoss& bigrams,
                           const Settings& settings) {
  MeanInterval difference = measured(Measure::kTrained, method, nullptr, settings)->interval;
  difference.mean -= bigrams.mean;
  const std::vector<double>& blocks = method.from.front().at.sliding_blocks;
  if (method.seeds.size() > 1 || blocks.size() != bigrams.blocks.size()) return difference;
  return interval95(paired_differences(blocks, bigrams.blocks));
}

MethodResult* find_none(std::vector<MethodResult>& methods) {
  const auto found = std::ranges::find_if(methods, [](const MethodResult& method) {
    if (!method.base.empty() || method.seeds.empty()) return false;
    // A causal mask or a memory tells something on positions.
    const Arm& arm = method.seeds.front().arm;
    return arm.method == kNone && !arm.causal && !arm.two_streams && arm.memory == 0;
  });
  return found == methods.end() ? nullptr : &*found;
}

// Sets text and to_reference of a method without a base.
void judge_text(MethodResult& method, const MethodResult* none, const Settings& settings,
                const BigramLoss* bigrams) {
  if (none != nullptr) {
    const auto difference = measured(Measure::kTrained, method, none, settings);
    if (difference) {
      method.to_reference = difference->interval;
      method.text = learned_if(is_below(difference->interval, kBelowNone));
      return;
    }
  }
  if (bigrams == nullptr) return;
  method.to_reference = above_bigrams(method, *bigrams, settings);
  method.text = learned_if(is_below(*method.to_reference, kBelowBigrams));
}

void judge_none(MethodResult& none, std::span<const MethodResult> methods, const Settings& settings,
                const BigramLoss* bigrams) {
  none.is_reference = true;
  const bool is_beaten = std::ranges::any_of(methods, [](const MethodResult& method) {
    return method.base.empty() && !method.is_reference && method.text == Learned::kYes;
  });
  none.text = learned_if(is_beaten && bigrams != nullptr &&
                         is_below(above_bigrams(none, *bigrams, settings), kBelowBigrams));
}

void judge_retrieval(MethodResult& method, const Settings& settings) {
  const RetrievalOptions& options = settings.retrieval;
  if (method.pairs.empty()) return;
  if (small_task(settings) == Task::kDirection) {
    const auto tagged = method.mean_accuracy_at(options.length);
    if (tagged) method.retrieval = learned_if(tagged->mean >= kTellsDirectionFrom);
    return;
  }
  const auto accuracy = method.accuracy_at(options.length, near_distance(options));
  if (accuracy) method.retrieval = learned_if(accuracy->mean >= kRetrievesFrom);
}

// Methods with a base have learned what it has; a base whose trainings all diverged says nothing.
void inherit(MethodResult& method, std::span<const MethodResult> methods) {
  const auto base = std::ranges::find(methods, method.base, &MethodResult::label);
  if (base == methods.end()) return;
  method.text = base->text;
  method.retrieval = base->retrieval;
}

}  // namespace

Findings findings_of(std::span<const ArmResult> results, const Settings& settings,
                     const Background& background) {
  Findings found{.settings = settings,
                 .results = {results.begin(), results.end()},
                 .methods = by_method(results, settings)};
  found.reference =
      judge(found.methods, settings, background.bigrams ? &*background.bigrams : nullptr);
  found.rankings = rankings(found.methods, settings);
  found.claims = check_claims(found.methods, settings, background.defaults);
  found.fewest_seeds = fewest_seeds(found.methods);
  found.has_intervals = std::ranges::any_of(found.methods, [](const MethodResult& method) {
    return std::max(method.seeds.size(), method.pairs.size()) > 1;
  });
  found.bytes_per_second = bytes_per_second(results, settings);
  return found;
}

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

std::optional<LearningReference> judge(std::vector<MethodResult>& methods, const Settings& settings,
                                       const BigramLoss* bigrams) {
  MethodResult* const none = find_none(methods);
  for (MethodResult& method : methods) {
    if (!method.base.empty()) continue;
    judge_retrieval(method, settings);
    if (&method != none && !method.seeds.empty()) judge_text(method, none, settings, bigrams);
  }
  if (none != nullptr) judge_none(*none, methods, settings, bigrams);
  for (MethodResult& method : methods) {
    if (!method.base.empty()) inherit(method, methods);
    if (method.text == Learned::kNo && method.verdict != Verdict::kDiverged)
      method.verdict = Verdict::kNotLearned;
  }
  if (none != nullptr)
    return LearningReference{.name = kNone,
                             .loss = none->losses_at(settings.training.length).sliding.mean,
                             .margin = kBelowNone};
  if (bigrams == nullptr) return {};
  return LearningReference{.name = "bigrams", .loss = bigrams->mean, .margin = kBelowBigrams};
}

std::string small_task_shortfall(const Settings& settings) {
  const RetrievalOptions& options = settings.retrieval;
  return small_task(settings) == Task::kPairs
             ? fmt::format("less than half of the pairs {} tokens back found in sequences of {}",
                           near_distance(options), options.length)
             : fmt::format("fewer than three quarters of the marks tagged right in sequences of {}",
                           options.length);
}

std::string shortfall(const LearningReference& reference) {
  return fmt::format("not significantly, or not by {:g}, below that of {} ({:.3f})",
                     reference.margin, reference.name, reference.loss);
}

}  // namespace sextant::lab
