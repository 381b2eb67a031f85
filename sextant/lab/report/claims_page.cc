// The claims of the literature in the report of one survey or several.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/chart/text.h"
#include "sextant/lab/report/report.h"

namespace sextant::lab {
namespace {

chart::Cell outcome_cell(Outcome outcome) {
  const chart::Tone tone = outcome == Outcome::kHolds        ? chart::Tone::kGood
                           : outcome == Outcome::kFails      ? chart::Tone::kBad
                           : outcome == Outcome::kNotLearned ? chart::Tone::kQuiet
                                                             : chart::Tone::kPlain;
  return chart::words(name(outcome), tone);
}

// "128, 1024": L and the longest length.
std::string lengths_of(const Findings& survey) {
  return fmt::format("{}, {}", survey.settings.training.length, survey.settings.test.longest());
}

bool is_same(const std::vector<chart::Cell>& row, const std::vector<chart::Cell>& other) {
  return std::ranges::equal(row, other, [](const chart::Cell& a, const chart::Cell& b) {
    return a.text == b.text && a.note == b.note;
  });
}

using Counts = std::map<Outcome, int64_t>;

// The prose and the table of the numbers of claims.
void add_numbers(const Findings& survey, chart::Section& section) {
  constexpr Outcome kOutcomes[] = {Outcome::kHolds, Outcome::kFails, Outcome::kUndecided,
                                   Outcome::kNotLearned};
  chart::Table table{
      .caption = "Claims by subject", .columns = {{"subject"}}, .name = "claims-by-subject"};
  for (const Outcome outcome : kOutcomes) table.columns.push_back({name(outcome)});
  Counts all;
  int64_t known = 0;
  const auto add_row = [&](const std::string& subject, Counts& counts) {
    std::vector<chart::Cell>& row = table.rows.emplace_back();
    row.push_back(chart::words(subject));
    for (const Outcome outcome : kOutcomes)
      row.push_back(chart::number(static_cast<double>(counts[outcome]), 0));
  };
  for (const ClaimSubject& subject : claim_subjects()) {
    Counts counts;
    for (const Claim& claim : subject.claims) {
      known += claim.objective == survey.settings.objective ? 1 : 0;
      // A claim with a free option is checked for each of its values.
      for (const CheckedClaim& one : survey.claims) {
        if (one.claim.text == claim.text && one.claim.measure == claim.measure) {
          ++counts[one.outcome];
          ++all[one.outcome];
        }
      }
    }
    if (!counts.empty()) add_row(subject.name, counts);
  }
  add_row("all", all);
  section.blocks.emplace_back(chart::Prose{fmt::format(
      "`sextant claims` lists {} claims on this task; {} compare methods of this survey. A claim "
      "is undecided if the claimed bound lies inside the interval, and not decided if a method has "
      "not learned the task. Intervals are over seeds if there are several, else over the test "
      "text, which does not show how much another seed would move them.",
      known, survey.claims.size())});
  section.blocks.emplace_back(std::move(table));
}

}  // namespace

chart::Section claims_section(std::span<const Findings* const> surveys,
                              const std::string& question) {
  chart::Section section{.heading = "Claims of the literature"};
  const auto is_asked = [&](const CheckedClaim& checked) {
    return question.empty() || chart::slug(checked.claim.question).starts_with(question);
  };
  std::vector<const Findings*> named;
  for (const Findings* const survey : surveys)
    if (std::ranges::any_of(survey->claims, is_asked)) named.push_back(survey);
  if (named.empty() && question.empty()) return section;
  if (named.empty()) {
    std::string known;
    for (const Findings* const survey : surveys) {
      for (const CheckedClaim& one : survey->claims) {
        const std::string name = chart::slug(one.claim.question);
        if (known.find(name) == std::string::npos) known += " " + name;
      }
    }
    fail(fmt::format("report: --question: expected one of{}, but got {}", known, question));
  }
  std::ranges::stable_sort(named, {},
                           [](const Findings* survey) { return survey->settings.training.length; });
  const bool differ = std::ranges::any_of(named, [&](const Findings* survey) {
    return lengths_of(*survey) != lengths_of(*named.front());
  });
  chart::Table table{.caption = "Claims, and what was measured here with its 95 % interval",
                     .columns = {{"claim"}, {"here"}, {"measured"}, {"claimed"}, {"source"}},
                     .stacks = true,
                     .name = "claims"};
  if (differ) table.columns.insert(table.columns.begin() + 1, {"L, longest"});
  for (const Findings* const survey : named) {
    for (const CheckedClaim& checked : survey->claims) {
      if (!is_asked(checked)) continue;
      const ClaimWords said = words(checked);
      std::vector<chart::Cell> cells{chart::words(checked.claim.text),
                                     outcome_cell(checked.outcome), chart::words(said.value),
                                     chart::words(said.bound), chart::words(checked.claim.source)};
      cells[0].note = said.measure;
      cells[1].note = said.reason;
      cells[2].note = said.over;
      if (question.empty()) cells[4].note = checked.claim.question;
      if (differ) cells.insert(cells.begin() + 1, chart::words(lengths_of(*survey)));
      const auto same = [&](const std::vector<chart::Cell>& row) { return is_same(row, cells); };
      if (std::ranges::none_of(table.rows, same)) table.rows.push_back(std::move(cells));
    }
  }
  if (question.empty() && surveys.size() == 1) add_numbers(*named.front(), section);
  section.blocks.emplace_back(std::move(table));
  return section;
}

}  // namespace sextant::lab
