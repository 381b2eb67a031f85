// A ranking (findings.h) becomes sentences: the best candidate, those not significantly worse, the
// rule, and what was left out.
#include "sextant/lab/report/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "sextant/lab/result/interval.h"

namespace sextant::lab {
namespace {

constexpr size_t kMostNamed = 4;

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// "a 1.500 (97 % found), b 1.600 (90 % found) and 3 more"
std::string list_of(const std::vector<Candidate>& all) {
  std::vector<std::string> names;
  for (const Candidate& one : all) {
    if (names.size() == kMostNamed) break;
    names.push_back(fmt::format("{} {:.3f}", one.label, one.loss));
    if (one.accuracy) names.back() += fmt::format(" ({} found)", percent(*one.accuracy));
  }
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (all.size() > kMostNamed) text += fmt::format(" and {} more", all.size() - kMostNamed);
  return text;
}

// "t5", "t5 or shaw", "t5, shaw or kerple-log", "t5, or one of 7 others"
std::string either(const std::string& best, const std::vector<Tie>& ties) {
  if (ties.empty()) return best;
  if (ties.size() >= kMostNamed) return fmt::format("{}, or one of {} others", best, ties.size());
  std::string text = best;
  for (size_t n = 0; n + 1 < ties.size(); ++n) text += ", " + ties[n].label;
  return text + " or " + ties.back().label;
}

// "shaw +0.005 ± 0.011, alibi +0.010 ± 0.020"
std::string list_of(const std::vector<Tie>& ties) {
  std::vector<std::string> names;
  for (const Tie& tie : ties) names.push_back(tie.label + " " + signed_fixed(tie.behind.interval));
  return fmt::format("{}", fmt::join(names, ", "));
}

// The sentences on one ranking.
class Answer {
 public:
  Answer(const Ranking& ranking, const Findings& findings)
      : ranking_(ranking),
        settings_(findings.settings),
        reference_(findings.reference),
        longest_(findings.settings.test.longest()) {}

  std::string sentence() const {
    if (ranking_.all.empty()) return nothing();
    if (ranking_.holding.empty())
      return fmt::format("**None of the {} {} holds its loss**: the lowest, {}, has {}.",
                         ranking_.all.size(), kind(), ranking_.all.front().label,
                         loss_of(ranking_.all.front()));
    const Candidate& best = ranking_.chosen().front();
    const bool tied = !ranking_.ties.empty();
    const std::string text =
        fmt::format("**{} {}**: {} has a loss of {}", instruction(),
                    either(best.label, ranking_.ties), tied ? best.label : "it", loss_of(best));
    if (ranking_.retrieving.empty())
      return text +
             fmt::format(", the lowest of those that hold, but none of these finds half of the {}.",
                         far_pairs());
    if (!best.accuracy) return text + ".";
    return text + fmt::format(" and finds {} of the {}.", percent(*best.accuracy), far_pairs());
  }

  // Markdown list items.
  std::string details() const {
    if (ranking_.all.empty()) return left_out();
    if (ranking_.holding.empty()) return counts() + by_loss(ranking_.all) + left_out();
    return counts() + by_loss(ranking_.chosen()) + ties() + forgetting() + left_out();
  }

 private:
  std::string instruction() const {
    return ranking_.base ? fmt::format("Stretch a trained {} with", ranking_.base->label)
                         : "Train with";
  }

  std::string kind() const {
    return ranking_.base ? fmt::format("stretches of {}", ranking_.base->label) : "encodings";
  }

  std::string heading() const {
    return ranking_.base ? fmt::format("Stretches of {}", ranking_.base->label)
                         : "Encodings that were trained";
  }

  // "1.557 at 1024 bytes (1.563 at 128)", or "... (rope unchanged: 3.494)"
  std::string loss_of(const Candidate& one) const {
    const std::string loss = fmt::format("{:.3f} at {} bytes", one.loss, longest_);
    if (ranking_.base)
      return loss +
             fmt::format(" ({} unchanged: {:.3f})", ranking_.base->label, ranking_.base->loss);
    return loss + fmt::format(" ({:.3f} at {})", one.trained_loss, settings_.training.length);
  }

  // The sentence where no method has learned the text, or only retrieval of it.
  std::string nothing() const {
    const std::string learned = ranking_.without_retrieval.empty() ? "the text" : "both tasks";
    if (ranking_.base)
      return fmt::format("**No stretch of {} is recommended**: {} itself has not learned {}.",
                         ranking_.base->label, ranking_.base->label, learned);
    return fmt::format("**No encoding is recommended**: none of them has learned {}.", learned);
  }

  // One list item on the methods that have not learned a task.
  std::string left_out() const {
    std::vector<std::string> reasons;
    if (!ranking_.without_text.empty())
      reasons.push_back(fmt::format("{} (loss at {}{})", fmt::join(ranking_.without_text, ", "),
                                    settings_.training.length,
                                    reference_ ? ": " + shortfall(*reference_) : ""));
    if (!ranking_.without_retrieval.empty())
      reasons.push_back(fmt::format("{} ({})", fmt::join(ranking_.without_retrieval, ", "),
                                    small_task_shortfall(settings_)));
    std::string text;
    if (!reasons.empty())
      text = fmt::format("- Left out, as not learned: {}.\n", fmt::join(reasons, "; "));
    if (ranking_.ignores_retrieval)
      text += fmt::format("- {} does not count, as no method has learned it: {}.\n",
                          small_task(settings_) == Task::kPairs ? "Retrieval" : "Direction",
                          small_task_shortfall(settings_));
    return text;
  }

  // "key-value pairs 504 tokens back"
  std::string far_pairs() const {
    const RetrievalOptions& options = settings_.retrieval;
    return fmt::format("key-value pairs {} tokens back", far_distance(options.longest(), options));
  }

  std::string counts() const {
    const std::vector<Candidate>& holding = ranking_.holding;
    std::string text = fmt::format("- {}: {} of {} hold their loss at {} bytes", heading(),
                                   holding.size(), ranking_.all.size(), longest_);
    const bool asked =
        std::ranges::any_of(holding, [](const Candidate& one) { return one.accuracy.has_value(); });
    if (asked)
      text += fmt::format("; {} of these find at least half of the {} in sequences of {}",
                          ranking_.retrieving.size(), far_pairs(), settings_.retrieval.longest());
    return text + ".\n";
  }

  std::string by_loss(const std::vector<Candidate>& candidates) const {
    return fmt::format("- By loss at {} bytes: {}.\n", longest_, list_of(candidates));
  }

  std::string ties() const {
    if (ranking_.ties.empty()) return "";
    const std::string over = words(ranking_.ties.back().behind);
    return fmt::format("- Not significantly worse than {} ({}{}, 95 %): {}.\n",
                       ranking_.chosen().front().label, over.starts_with("over") ? "paired " : "",
                       over, list_of(ranking_.ties));
  }

  std::string forgetting() const {
    std::vector<Candidate> candidates;
    for (const Candidate& one : ranking_.holding)
      if (!one.retrieves()) candidates.push_back(one);
    if (ranking_.retrieving.empty() || candidates.empty()) return "";
    return fmt::format("- Loss alone misleads: it also holds for {}, which do{} not find the {}.\n",
                       list_of(candidates), candidates.size() == 1 ? "es" : "", far_pairs());
  }

  const Ranking& ranking_;
  const Settings& settings_;
  const std::optional<LearningReference>& reference_;
  int64_t longest_;
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
      settings.retrieval.steps == 0          ? ""
      : small_task(settings) == Task::kPairs ? " and find at least half of the pairs far back"
                                             : " and tell direction",
      settings.test.longest());
}

}  // namespace

Advice advice(const Findings& findings) {
  Advice advice;
  if (findings.rankings.empty()) return advice;
  std::string details;
  for (const Ranking& ranking : findings.rankings) {
    const Answer answer(ranking, findings);
    std::string& sentences = ranking.base ? advice.stretch : advice.train;
    sentences += (sentences.empty() ? "" : " ") + answer.sentence();
    details += answer.details();
  }
  advice.seeds = findings.fewest_seeds;
  advice.details = rule_of(findings.settings) + "\n\n" + details + "\n" + trust_of(advice.seeds);
  return advice;
}

std::string Advice::answer() const {
  return train + (train.empty() || stretch.empty() ? "" : "\n\n") + stretch;
}

std::string advice_text(const Advice& advice) {
  std::string text;
  for (const std::string& sentence : {advice.train, advice.stretch})
    if (!sentence.empty()) text += sentence + "\n";
  if (!text.empty()) text += "\n" + advice.details + "\n";
  // Markdown of the HTML report.
  std::erase_if(text, [](char sign) { return sign == '*' || sign == '`'; });
  return text;
}

}  // namespace sextant::lab
