#include "sextant/lab/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "sextant/lab/claims.h"
#include "sextant/lab/compare.h"
#include "sextant/lab/fixed.h"
#include "sextant/lab/pair_task.h"

namespace sextant::lab {
namespace {

constexpr double kFindsEnough = 0.5;
constexpr size_t kMostNamed = 4;

struct Candidate {
  const MethodResult* method;
  std::string label;
  double loss = 0;              // sliding, at the longest length
  std::optional<double> found;  // at the beginning of the longest text
  bool holds = false;

  bool finds() const { return !found || *found >= kFindsEnough; }
};

// Of the methods that `wanted` says, the lowest loss first.
std::vector<Candidate> candidates(std::span<const MethodResult> methods, const Settings& settings,
                                  const auto& wanted) {
  const RetrievalOptions& options = settings.retrieval;
  std::vector<Candidate> all;
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

std::string numbers_of(const Candidate& one) {
  std::string text = fmt::format("{} {:.3f}", one.label, one.loss);
  if (one.found) text += fmt::format(" ({:.0f} % found)", 100 * *one.found);
  return text;
}

// "a 1.5 (97 % found), b 1.6 (90 % found) and 3 more"
std::string list_of(std::span<const Candidate> all) {
  std::vector<std::string> names;
  for (const Candidate& one : all.first(std::min(all.size(), kMostNamed))) {
    names.push_back(numbers_of(one));
  }
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (all.size() > kMostNamed) text += fmt::format(" and {} more", all.size() - kMostNamed);
  return text;
}

std::vector<Candidate> only(std::span<const Candidate> all, const auto& wanted) {
  std::vector<Candidate> result;
  std::ranges::copy_if(all, std::back_inserter(result), wanted);
  return result;
}

// Those after the first whose loss on the longest texts is not above the first's for certain, and how far it is.
struct Ties {
  std::vector<std::string> labels, numbers;
  std::string over;  // "over 64 blocks"
};

Ties ties_of(std::span<const Candidate> all, const Settings& settings) {
  Ties ties;
  for (const Candidate& one : all.subspan(1)) {
    const std::optional<Measured> behind =
        measured(Measure::kLongest, *one.method, all.front().method, settings);
    if (!behind || behind->interval.mean - behind->interval.half > 0) continue;
    ties.labels.push_back(one.label);
    ties.numbers.push_back(fmt::format("{} {} ± {:.3f}", one.label,
                                       signed_fixed(behind->interval.mean), behind->interval.half));
    ties.over = words(*behind);
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

// The best of them and why; `instruction` takes its name, `what` says what they are.
std::string best_of(std::span<const Candidate> all, const std::string& instruction,
                    const std::string& what, const Settings& settings) {
  const int64_t longest = settings.test.longest();
  const std::vector<Candidate> holding = only(all, [](const Candidate& one) { return one.holds; });
  const std::vector<Candidate> both =
      only(holding, [](const Candidate& one) { return one.finds(); });
  const bool asked =
      std::ranges::any_of(all, [](const Candidate& one) { return one.found.has_value(); });
  if (holding.empty()) {
    return fmt::format("**None of the {} holds its loss at {} bytes.** Lowest there: {}.", what,
                       longest, list_of(all));
  }
  const std::vector<Candidate>& chosen = both.empty() ? holding : both;
  const Ties ties = ties_of(chosen, settings);
  std::string text =
      fmt::format("**{} {}.** ", instruction, either(chosen.front().label, ties.labels));
  if (both.empty()) {
    text += fmt::format(
        "None of the {} both holds its loss at {} bytes and finds half of the pairs far back; it "
        "has "
        "the lowest loss of those that hold: {}.",
        what, longest, list_of(holding));
  } else {
    text += fmt::format(
        "Of the {} {}, {} hold their loss at {} bytes{}; {}lowest loss: {}.", all.size(), what,
        holding.size(), longest,
        asked ? fmt::format(" and {} of these find at least half of the pairs {} tokens "
                            "back in {}",
                            both.size(),
                            far_distance(settings.retrieval.longest(), settings.retrieval),
                            settings.retrieval.longest())
              : "",
        both.size() > 1 ? "by " : "", list_of(both));
  }
  if (!ties.labels.empty()) {
    text += fmt::format(" By loss {} {} not to be told apart from {} ({}; 95 %, {}).",
                        fmt::join(ties.labels, ", "), ties.labels.size() == 1 ? "is" : "are",
                        chosen.front().label, fmt::join(ties.numbers, ", "), ties.over);
  }
  const std::vector<Candidate> deaf =
      only(holding, [](const Candidate& one) { return !one.finds(); });
  if (!both.empty() && !deaf.empty()) {
    text +=
        fmt::format(" Do not be misled by loss alone: {} hold{} it, but lose{} what lies far back.",
                    list_of(deaf), deaf.size() == 1 ? "s" : "", deaf.size() == 1 ? "s" : "");
  }
  return text;
}

}  // namespace

Advice advice(std::span<const MethodResult> methods, const Settings& settings) {
  Advice advice;
  if (settings.training.bytes < kEnoughBytes) return advice;
  const std::vector<Candidate> trained = candidates(
      methods, settings, [](const MethodResult& method) { return method.reads.empty(); });
  if (trained.size() >= 2) {
    advice.train = best_of(trained, "Train with", "encodings that were trained", settings);
  }
  for (const MethodResult& base : methods) {
    const std::vector<Candidate> readings = candidates(
        methods, settings, [&](const MethodResult& method) { return method.reads == base.label; });
    if (readings.empty() || base.seeds.empty()) continue;
    if (!advice.stretch.empty()) advice.stretch += "\n\n";
    const Spread as_it_is = base.at(&AtLength::sliding, settings.test.lengths.size() - 1);
    advice.stretch += best_of(readings, fmt::format("Stretch a trained {} with", base.label),
                              fmt::format("ways to read a trained {}", base.label), settings) +
                      fmt::format(" As it is, {} has {:.3f}.", base.label, as_it_is.mean);
  }
  if (advice.train.empty() && advice.stretch.empty()) return advice;
  for (const MethodResult& method : methods) {
    if (method.seeds.empty()) continue;
    advice.seeds =
        advice.seeds == 0 ? method.seeds.size() : std::min(advice.seeds, method.seeds.size());
  }
  advice.trust = advice.seeds > 1
                     ? fmt::format("These are means over {} seeds of a small model.", advice.seeds)
                     : "This is one seed of a small model: which of two methods that are near each "
                       "other comes "
                       "first may be chance. With --seeds 3 there are intervals.";
  return advice;
}

std::string advice_text(const Advice& advice) {
  std::string text;
  for (const std::string& words : {advice.train, advice.stretch, advice.trust}) {
    if (!words.empty()) text += words + "\n";
  }
  std::erase(text, '*');  // what is strong in the report
  return text;
}

}  // namespace sextant::lab
