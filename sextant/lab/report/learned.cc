#include "sextant/lab/report/learned.h"

#include <fmt/format.h>

#include <algorithm>

#include "sextant/lab/report/compare.h"

namespace sextant::lab {
namespace {

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
  std::vector<double> paired;
  for (size_t n = 0; n < blocks.size(); ++n) paired.push_back(blocks[n] - bigrams.blocks[n]);
  return interval95(paired);
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
    if (method.text == Learned::kNo && method.verdict != Verdict::kDiverged) {
      method.verdict = Verdict::kNotLearned;
    }
  }
  if (none != nullptr) {
    return LearningReference{.name = kNone,
                             .loss = none->losses_at(settings.training.length).sliding.mean,
                             .margin = kBelowNone};
  }
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
