// The page of several surveys. A survey is named after its folder or file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sextant/lab/report/report.h"
#include "sextant/lab/report/result_table.h"
#include "sextant/lab/report/survey_record.h"
#include "sextant/lab/result/result.h"

namespace sextant::lab {
namespace {

using Labels = std::vector<std::string>;
using Methods = std::vector<const MethodResult*>;
using Surveys = std::span<const SurveyRecord>;

std::string listed(const Labels& labels) { return fmt::format("`{}`", fmt::join(labels, "`, `")); }

const MethodResult* find(const SurveyRecord& survey, const std::string& label) {
  const auto& methods = survey.findings.methods;
  const auto found = std::ranges::find(methods, label, &MethodResult::label);
  return found == methods.end() || found->losses.empty() ? nullptr : &*found;
}

// The methods that all surveys have, in the order of the last one's comparison: encodings, then
// stretches.
Methods shared_methods(Surveys surveys) {
  Labels bases{""};
  Methods methods;
  const Findings& last = surveys.back().findings;
  for (const MethodResult& method : last.methods)
    if (method.is_base) bases.push_back(method.label);
  for (const std::string& base : bases) {
    for (const ResultTable::Row& row : comparison(last, base).rows) {
      const MethodResult* const method = find(surveys.back(), row.label);
      const bool shared = std::ranges::all_of(
          surveys, [&](const SurveyRecord& survey) { return find(survey, row.label) != nullptr; });
      const bool is_new = std::ranges::find(methods, method) == methods.end();
      if (shared && is_new) methods.push_back(method);
    }
  }
  return methods;
}

std::optional<MeanInterval> far_pairs(const MethodResult& method, const SurveyRecord& survey) {
  const RetrievalOptions& options = survey.findings.settings.retrieval;
  return method.accuracy_at(options.longest(), far_distance(options.longest(), options));
}

chart::Table conditions_table(Surveys surveys) {
  chart::Table table{
      .caption = "Surveys",
      .columns = {{"survey"}, {"command"}, {"models"}, {"arms"}, {"seeds"}, {"date"}, {"machine"}},
      .stacks = true,
      .name = "surveys"};
  for (const SurveyRecord& survey : surveys) {
    const Findings& findings = survey.findings;
    const size_t done = findings.results.size();
    Labels machines;
    for (const Machine& machine : machines_of(findings.results)) machines.push_back(machine.name);
    const std::string arms = done == survey.planned ? "" : fmt::format(" of {}", survey.planned);
    table.rows.push_back({{.text = survey.name, .is_code = true},
                          {.text = survey.command, .is_code = true},
                          {.text = size_words(findings)},
                          {.text = std::to_string(done) + arms, .note = time_words(findings)},
                          {.text = std::to_string(findings.fewest_seeds)},
                          {.text = survey.date},
                          {.text = fmt::format("{}", fmt::join(machines, "; "))}});
  }
  return table;
}

// A column for each survey of the change, with the verdict as a note, of the loss at L and of the
// share of far pairs.
chart::Table methods_table(Surveys surveys, const Methods& methods) {
  using Cell = std::optional<MeanInterval>;
  std::vector<ValueColumn> columns;
  for (const int which : {0, 1, 2}) {
    for (const SurveyRecord& survey : surveys) {
      const Settings& settings = survey.findings.settings;
      const int64_t trained = settings.training.length, longest = settings.test.longest();
      const auto value = [=, &survey](const MethodResult& method) {
        const MethodResult& here = *find(survey, method.label);
        return which == 0   ? Cell(here.change)
               : which == 1 ? Cell(here.losses_at(trained).sliding)
                            : far_pairs(here, survey);
      };
      const auto verdict = [=, &survey](const MethodResult& method) {
        return which == 0 ? name(find(survey, method.label)->verdict) : "";
      };
      const std::string names[] = {fmt::format("change at {}", longest),
                                   fmt::format("loss at {}", trained),
                                   fmt::format("far {}", settings.retrieval.longest())};
      columns.push_back({.column = {.name = names[which],
                                    .unit = survey.name,
                                    .sign = which == 0,
                                    .decimals = which == 2 ? 2 : 3},
                         .value = value,
                         .note = verdict});
    }
  }
  ResultTable table{.name = "methods",
                    .caption =
                        "Methods of all of these surveys: losses in nats per byte, the "
                        "verdict, and the share of pairs found at the beginning"};
  fill(table, methods, columns, false, [](const MethodResult&) { return ""; });
  return report_table(table);
}

// "the same for 11 of 12 methods; `ntk`: not found in a, found in b"
std::string differing(Surveys surveys, const Methods& methods, const auto& what) {
  Labels unlike;
  for (const MethodResult* const method : methods) {
    Labels said, words;
    for (const SurveyRecord& survey : surveys) {
      words.push_back(what(*find(survey, method->label), survey));
      said.push_back(fmt::format("{} in {}", words.back(), survey.name));
    }
    if (std::ranges::count(words, words.front()) == std::ssize(words)) continue;
    unlike.push_back(fmt::format("`{}`: {}", method->label, fmt::join(said, ", ")));
  }
  return fmt::format("the same for {} of {} methods{}{}\n", methods.size() - unlike.size(),
                     methods.size(), unlike.empty() ? "" : "; ", fmt::join(unlike, "; "));
}

// The first of the shared candidates of each ranking, and those that are not told apart from it.
std::string first_words(const SurveyRecord& survey, const Methods& methods) {
  std::string text;
  for (const Ranking& ranking : survey.findings.rankings) {
    const MethodResult* first = nullptr;
    Labels ties;
    for (const Candidate& one : ranking.chosen()) {
      if (std::ranges::find(methods, one.label, &MethodResult::label) == methods.end()) continue;
      const MethodResult* const method = find(survey, one.label);
      if (first == nullptr) first = method;
      const auto apart = behind(*method, *first, survey.findings.settings);
      if (method != first && apart && apart->half && apart->low() <= 0) ties.push_back(one.label);
    }
    if (first == nullptr) continue;
    text += fmt::format("- First of these in {}, {}: `{}`{}\n", survey.name,
                        ranking.base ? "stretches of " + ranking.base->label : "encodings",
                        first->label, ties.empty() ? "" : ", not told apart from " + listed(ties));
  }
  return text;
}

std::string claims_words(Surveys surveys) {
  std::map<std::string, std::vector<Outcome>> outcomes;  // of claims that a survey decides
  for (const SurveyRecord& survey : surveys) {
    for (const CheckedClaim& one : survey.findings.claims) {
      if (one.outcome != Outcome::kHolds && one.outcome != Outcome::kFails) continue;
      outcomes[words(one).measure + one.claim.text].push_back(one.outcome);
    }
  }
  size_t decided = 0, agreed = 0;
  for (const auto& [claim, found] : outcomes) {
    if (found.size() < surveys.size()) continue;
    ++decided;
    agreed += std::ranges::count(found, found.front()) == std::ssize(found) ? 1 : 0;
  }
  return fmt::format("- Claims of the literature that all decide: {}, with the same outcome: {}\n",
                     decided, agreed);
}

chart::Section shared_section(Surveys surveys, const Methods& methods) {
  std::string text = "- Verdict on the loss: ";
  text += differing(surveys, methods, [](const MethodResult& method, const SurveyRecord&) {
    return std::string(name(method.verdict));
  });
  text += "- Far pairs: ";
  text += differing(
      surveys, methods, [](const MethodResult& method, const SurveyRecord& survey) -> std::string {
        const auto share = far_pairs(method, survey);
        return !share ? "not tested" : share->mean >= kRetrievesFrom ? "found" : "not found";
      });
  for (const SurveyRecord& survey : surveys) text += first_words(survey, methods);
  return {"In all of them",
          {chart::Prose{text + claims_words(surveys)}, methods_table(surveys, methods)}};
}

}  // namespace

chart::Report surveys_page(Surveys surveys, const std::string& question) {
  chart::Report page;
  page.title = fmt::format("{} surveys", surveys.size());
  page.sections.push_back({"Surveys", {conditions_table(surveys)}});
  const Methods methods = shared_methods(surveys);
  if (!methods.empty()) page.sections.push_back(shared_section(surveys, methods));
  std::vector<const Findings*> all;
  for (const SurveyRecord& survey : surveys) all.push_back(&survey.findings);
  chart::Section claims = claims_section(all, question);
  if (!claims.blocks.empty()) page.sections.push_back(std::move(claims));
  return page;
}

}  // namespace sextant::lab
