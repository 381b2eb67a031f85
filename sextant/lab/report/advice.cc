#include "sextant/lab/report/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "sextant/lab/data/retrieval_task.h"
#include "sextant/lab/report/claims.h"
#include "sextant/lab/report/compare.h"
#include "sextant/lab/report/format_number.h"

namespace sextant::lab {
namespace {

constexpr double kFindsEnough = 0.5;
constexpr size_t kMostNamed = 4;

struct Candidate {
  const MethodResult* method;
  std::string label;
  double loss = 0;              // sliding loss at the longest length
  std::optional<double> found;  // retrieval accuracy at the beginning of the longest sequence
  bool holds = false;

  bool finds() const { return !found || *found >= kFindsEnough; }
};

using Candidates = std::vector<Candidate>;

// The methods that `wanted` accepts, sorted by loss, lowest first.
Candidates candidates(std::span<const MethodResult> methods, const Settings& settings,
                      const auto& wanted) {
  const RetrievalOptions& options = settings.retrieval;
  Candidates all;
  for (const MethodResult& method : methods) {
    if (method.seeds.empty() || !wanted(method)) continue;
    Candidate one{.method = &method,
                  .label = method.label,
                  .loss = method.at(&AtLength::sliding, settings.test.lengths.size() - 1).mean,
                  .found = {},
                  .holds = verdict(method, methods, settings) == "holds"};
    const auto found = options.steps > 0 ? method.found(options.longest(),
                                                        far_distance(options.longest(), options))
                                         : std::nullopt;
    if (found) one.found = found->mean;
    all.push_back(one);
  }
  std::ranges::stable_sort(all, {}, &Candidate::loss);
  return all;
}

Candidates only(const Candidates& all, const auto& wanted) {
  Candidates result;
  std::ranges::copy_if(all, std::back_inserter(result), wanted);
  return result;
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// "a 1.500 (97 % found), b 1.600 (90 % found) and 3 more"
std::string list_of(const Candidates& all) {
  std::vector<std::string> names;
  for (const Candidate& one : all) {
    if (names.size() == kMostNamed) break;
    names.push_back(fmt::format("{} {:.3f}", one.label, one.loss));
    if (one.found) names.back() += fmt::format(" ({} found)", percent(*one.found));
  }
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (all.size() > kMostNamed) text += fmt::format(" and {} more", all.size() - kMostNamed);
  return text;
}

// The candidates after the first whose loss at the longest length is not significantly higher than
// that of the first.
struct Ties {
  std::vector<std::string> labels, numbers;
  std::string over;  // "paired over 64 blocks"
};

Ties ties_of(const Candidates& all, const Settings& settings) {
  Ties ties;
  for (const Candidate& one : std::span(all).subspan(1)) {
    const std::optional<Measured> behind =
        measured(Measure::kLongest, *one.method, all.front().method, settings);
    if (!behind || behind->interval.mean - behind->interval.half > 0) continue;
    ties.labels.push_back(one.label);
    ties.numbers.push_back(fmt::format("{} {} ± {:.3f}", one.label,
                                       signed_fixed(behind->interval.mean), behind->interval.half));
    const std::string over = words(*behind);
    ties.over = (over.starts_with("over") ? "paired " : "") + over;
  }
  return ties;
}

// "t5", "t5 or shaw", "t5, shaw or kerple-log", "t5, or one of 7 others"
std::string either(const std::string& best, const std::vector<std::string>& others) {
  if (others.empty()) return best;
  if (others.size() >= kMostNamed)
    return fmt::format("{}, or one of {} others", best, others.size());
  std::string text = best;
  for (size_t n = 0; n + 1 < others.size(); ++n) text += ", " + others[n];
  return text + " or " + others.back();
}

// A question: which encoding to train with, or how to stretch a trained one.
struct Question {
  std::string instruction;             // "Train with"; the name of the best method follows
  std::string kind;                    // "encodings"
  std::string heading;                 // "Encodings"
  const MethodResult* base = nullptr;  // the method to stretch
};

struct Answer {
  std::string sentence;
  std::string details;  // Markdown list items
};

class Choice {
 public:
  Choice(const Question& question, const Candidates& all, const Settings& settings)
      : question_(question),
        settings_(settings),
        longest_(settings.test.longest()),
        all_(all),
        holding_(only(all, [](const Candidate& one) { return one.holds; })),
        both_(only(holding_, [](const Candidate& one) { return one.finds(); })) {}

  Answer answer() const {
    if (holding_.empty()) {
      return {.sentence = fmt::format(
                  "**None of the {} {} holds its loss**: the lowest, {}, has {}.", all_.size(),
                  question_.kind, all_.front().label, loss_of(all_.front())),
              .details =
                  counts() + fmt::format("- By loss at {} bytes: {}.\n", longest_, list_of(all_))};
    }
    const Candidates& chosen = both_.empty() ? holding_ : both_;
    const Ties ties = ties_of(chosen, settings_);
    const std::string name = either(chosen.front().label, ties.labels);
    return {.sentence = sentence(name, chosen.front(), !ties.labels.empty()),
            .details = counts() + ranking(chosen, ties)};
  }

 private:
  // "1.557 at 1024 bytes (1.563 at 128)", or "... (rope unchanged: 3.494)"
  std::string loss_of(const Candidate& one) const {
    const std::vector<int64_t>& lengths = settings_.test.lengths;
    const std::string loss = fmt::format("{:.3f} at {} bytes", one.loss, longest_);
    if (question_.base != nullptr) {
      return loss + fmt::format(" ({} unchanged: {:.3f})", question_.base->label,
                                question_.base->at(&AtLength::sliding, lengths.size() - 1).mean);
    }
    const auto trained = std::ranges::find(lengths, settings_.training.length);
    if (trained == lengths.end()) return loss;
    const auto index = static_cast<size_t>(trained - lengths.begin());
    return loss + fmt::format(" ({:.3f} at {})", one.method->at(&AtLength::sliding, index).mean,
                              settings_.training.length);
  }

  // "key-value pairs 504 tokens back"
  std::string far_pairs() const {
    const RetrievalOptions& options = settings_.retrieval;
    return fmt::format("key-value pairs {} tokens back", far_distance(options.longest(), options));
  }

  std::string sentence(const std::string& name, const Candidate& best, bool tied) const {
    std::string text = fmt::format("**{} {}**: {} has a loss of {}", question_.instruction, name,
                                   tied ? best.label : "it", loss_of(best));
    if (both_.empty()) {
      return text + fmt::format(
                        ", the lowest of those that hold, but none of these finds half of "
                        "the {}.",
                        far_pairs());
    }
    if (best.found)
      text += fmt::format(" and finds {} of the {}", percent(*best.found), far_pairs());
    return text + ".";
  }

  std::string counts() const {
    std::string text = fmt::format("- {}: {} of {} hold their loss at {} bytes", question_.heading,
                                   holding_.size(), all_.size(), longest_);
    const bool asked =
        std::ranges::any_of(holding_, [](const Candidate& one) { return one.found.has_value(); });
    if (asked) {
      text += fmt::format("; {} of these find at least half of the {} in sequences of {}",
                          both_.size(), far_pairs(), settings_.retrieval.longest());
    }
    return text + ".\n";
  }

  std::string ranking(const Candidates& chosen, const Ties& ties) const {
    std::string text = fmt::format("- By loss at {} bytes: {}.\n", longest_, list_of(chosen));
    if (!ties.labels.empty()) {
      text += fmt::format("- Not significantly worse than {} ({}, 95 %): {}.\n",
                          chosen.front().label, ties.over, fmt::join(ties.numbers, ", "));
    }
    const Candidates forgetting = only(holding_, [](const Candidate& one) { return !one.finds(); });
    if (!both_.empty() && !forgetting.empty()) {
      text +=
          fmt::format("- Loss alone misleads: it also holds for {}, which do{} not find the {}.\n",
                      list_of(forgetting), forgetting.size() == 1 ? "es" : "", far_pairs());
    }
    return text;
  }

  const Question& question_;
  const Settings& settings_;
  int64_t longest_;
  const Candidates& all_;
  Candidates holding_;
  Candidates both_;
};

std::string trust_of(size_t seeds) {
  if (seeds > 1) return fmt::format("Numbers are means over {} seeds of a small model.", seeds);
  return "This is one seed of a small model: which of two near methods comes first may be chance. "
         "`--seeds 3` gives intervals.";
}

std::string rule_of(const Settings& settings) {
  return fmt::format(
      "Candidates that hold{} are ranked by loss at {} bytes; those not significantly worse than "
      "the first are named with it.",
      settings.retrieval.steps > 0 ? " and find at least half of the pairs far back" : "",
      settings.test.longest());
}

size_t fewest_seeds(std::span<const MethodResult> methods) {
  size_t seeds = 0;
  for (const MethodResult& method : methods) {
    if (method.seeds.empty()) continue;
    seeds = seeds == 0 ? method.seeds.size() : std::min(seeds, method.seeds.size());
  }
  return seeds;
}

}  // namespace

Advice advice(std::span<const MethodResult> methods, const Settings& settings) {
  Advice advice;
  if (settings.training.bytes < kEnoughBytes) return advice;
  std::string details;
  const auto add = [&](std::string& sentences, const Question& question, const Candidates& all) {
    const Answer answer = Choice(question, all, settings).answer();
    sentences += (sentences.empty() ? "" : " ") + answer.sentence;
    details += answer.details;
  };
  const Candidates trained = candidates(
      methods, settings, [](const MethodResult& method) { return method.reads.empty(); });
  if (trained.size() >= 2) {
    add(advice.train,
        {.instruction = "Train with",
         .kind = "encodings",
         .heading = "Encodings that were trained"},
        trained);
  }
  for (const MethodResult& base : methods) {
    const Candidates stretches = candidates(
        methods, settings, [&](const MethodResult& method) { return method.reads == base.label; });
    if (stretches.empty() || base.seeds.empty()) continue;
    add(advice.stretch,
        {.instruction = fmt::format("Stretch a trained {} with", base.label),
         .kind = fmt::format("stretches of {}", base.label),
         .heading = fmt::format("Stretches of {}", base.label),
         .base = &base},
        stretches);
  }
  if (advice.answer().empty()) return advice;
  advice.seeds = fewest_seeds(methods);
  advice.details = rule_of(settings) + "\n\n" + details + "\n" + trust_of(advice.seeds);
  return advice;
}

std::string Advice::answer() const {
  return train + (train.empty() || stretch.empty() ? "" : "\n\n") + stretch;
}

std::string advice_text(const Advice& advice) {
  std::string text;
  for (const std::string& sentence : {advice.train, advice.stretch}) {
    if (!sentence.empty()) text += sentence + "\n";
  }
  if (!text.empty()) text += "\n" + advice.details + "\n";
  // Markdown of the HTML report.
  std::erase_if(text, [](char sign) { return sign == '*' || sign == '`'; });
  return text;
}

}  // namespace sextant::lab
