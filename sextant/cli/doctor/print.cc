// The report of `sextant doctor` as text and as a page.
#include <fmt/format.h>

#include <algorithm>

#include "sextant/cli/doctor/report.h"
#include "sextant/cli/explain/subject.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

const std::vector<std::string> kColumns = {"layers",  "rotates", "rotated", "base",
                                           "stretch", "window",  "scale",   "verdict"};

std::string numbers_or_all(const std::vector<int64_t>& layers) {
  return layers.empty() ? "all" : layer_list(layers);
}
std::string number_or_dash(double value) { return value == 0 ? "-" : number(value); }

std::vector<std::string> cells_of(const LayerRow& row) {
  return {(row.kind.empty() ? "" : row.kind + ": ") + numbers_or_all(row.layers),
          row.rotates,
          row.rotated,
          number_or_dash(row.base),
          row.stretch,
          row.window,
          number_or_dash(row.scale),
          row.verdict};
}

// A sentence on each fact that was not measured.
std::vector<std::string> not_measured(const DoctorReport& report) {
  std::vector<std::string> sentences;
  for (const JudgedFact& fact : report.facts) {
    if (fact.status == "not measured")
      sentences.push_back(
          sentence_of(Unjudged{.layers = fact.layers, .what = fact.fact, .why = fact.why}));
  }
  return sentences;
}

// " (transformers 5.24.0, torch 2.15.0)"
std::string versions_of(const DoctorReport& report) {
  std::string list;
  for (const auto& [name, version] : report.versions)
    list += (list.empty() ? "" : ", ") + name + " " + version;
  return list.empty() ? "" : " (" + list + ")";
}

}  // namespace

std::string layers_of(const ConfigFinding& found) {
  return found.kind.empty() ? numbers_or_all(found.layers) : found.kind;
}

std::string severity_of(const ConfigFinding& found) { return found.warning ? "warning" : "error"; }

std::string sentence_of(const Unjudged& unjudged) {
  return unjudged.what +
         (unjudged.layers.empty() ? "" : ", layers " + layer_list(unjudged.layers)) + ": " +
         unjudged.why;
}

void print(const DoctorReport& report) {
  lab::print("{}, against {}{}\n\n", report.subject, report.against, versions_of(report));
  std::vector<std::vector<std::string>> lines = {kColumns};
  for (const LayerRow& row : report.rows) lines.push_back(cells_of(row));
  if (!report.rows.empty()) print_table(lines);
  for (const ConfigFinding& found : report.result.findings) {
    lab::print("{}: {}, {}{}\n", severity_of(found), found.field,
               found.kind.starts_with("vision") ? "" : "layers ", layers_of(found));
    print_wrapped("expected      " + found.expected);
    print_wrapped("got           " + found.got);
    if (!found.cause.empty()) print_wrapped("cause         " + found.cause);
    lab::print("\n");
  }
  for (const Unjudged& unjudged : report.result.unjudged)
    print_wrapped("not judged    " + sentence_of(unjudged));
  for (const std::string& note : report.result.notes) print_wrapped("note          " + note);
  for (const std::string& missing : not_measured(report)) print_wrapped("not measured  " + missing);
  const size_t count = report.result.findings.size();
  const bool warns = std::ranges::all_of(report.result.findings, &ConfigFinding::warning);
  const std::string verdict =
      count == 0
          ? report.verdict()
          : fmt::format("{} {}{}", count, warns ? "warning" : "finding", count > 1 ? "s" : "");
  const std::string facts = report.facts_text();
  print_wrapped("verdict: " + verdict + (facts.empty() ? "" : " (" + facts + ")"));
}

chart::Report page_of(const DoctorReport& report) {
  using chart::Tone;
  using chart::words;
  chart::Table layers{.caption = "Layers"};
  for (const std::string& column : kColumns) layers.columns.push_back({column});
  for (const LayerRow& row : report.rows) {
    std::vector<chart::Cell>& line = layers.rows.emplace_back();
    for (const std::string& cell : cells_of(row)) line.push_back(words(cell));
    line.back().tone = row.verdict == "ok" ? Tone::kGood : Tone::kBad;
  }
  chart::Report page{.title = "sextant doctor: " + report.subject,
                     .lead = "Compared with " + report.against + versions_of(report) +
                             ". Verdict: **" + report.verdict() + "**" +
                             (report.facts.empty() ? "" : " (" + report.facts_text() + ")") + ".",
                     .opening = {"", {layers}},
                     .footer = ""};
  chart::Table findings{
      .columns = {{"severity"}, {"layers"}, {"field"}, {"expected"}, {"got"}, {"cause"}},
      .stacks = true};
  for (const ConfigFinding& found : report.result.findings)
    findings.rows.push_back({words(severity_of(found)), words(layers_of(found)),
                             words(found.field, Tone::kBad), words(found.expected),
                             words(found.got), words(found.cause)});
  if (!findings.rows.empty()) page.sections.push_back({"Findings", {findings}});
  std::string notes;
  for (const Unjudged& entry : report.result.unjudged)
    notes += "- not judged: " + sentence_of(entry) + "\n";
  for (const std::string& missing : not_measured(report))
    notes += "- not measured: " + missing + "\n";
  for (const std::string& note : report.result.notes) notes += "- " + note + "\n";
  if (!notes.empty()) page.sections.push_back({"Notes", {chart::Prose{notes}}});
  return page;
}

}  // namespace sextant::cli
