#include "sextant/cli/doctor/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sextant/cli/explain/subject.h"
#include "sextant/lab/run/print.h"
#include "sextant/version.h"

namespace sextant::cli {
namespace {

using nlohmann::json;

std::string layers_of(const std::vector<int64_t>& layers) {
  return layers.empty() ? "all" : layer_list(layers);
}
std::string layers_of(const ConfigFinding& found) {
  return found.kind.empty() ? layers_of(found.layers) : found.kind;
}

std::string severity_of(const ConfigFinding& found) { return found.warning ? "warning" : "error"; }

// The explanations of the groups; they refer to the report's settings.
std::vector<Subject> subjects_of(const DoctorReport& report) {
  std::vector<Subject> subjects;
  for (const RopeConfig& setting : report.read.settings) {
    subjects.push_back({setting, explain(setting, 0)});
  }
  return subjects;
}

std::string window_of(const RopeConfig& setting) {
  if (setting.window > 0) return std::to_string(setting.window);
  return setting.chunk > 0 ? fmt::format("chunks of {}", setting.chunk) : "-";
}

// The fields of the findings that concern a group.
std::string verdict_of(const DoctorReport& report, const RopeConfig& group) {
  std::string fields;
  for (const ConfigFinding& found : report.result.findings) {
    bool own = found.kind.empty() ? found.layers.empty() || group.layer_numbers.empty()
                                  : found.kind == group.layers;
    for (const int64_t layer : group.layer_numbers) {
      own = own || std::ranges::find(found.layers, layer) != found.layers.end();
    }
    if (own && fields.find(found.field) == std::string::npos) {
      fields += (fields.empty() ? "" : ", ") + found.field;
    }
  }
  return fields.empty() ? "ok" : fields;
}

json row_of(const DoctorReport& report, const Subject& subject) {
  const auto& [setting, numbers] = subject;
  const std::string pairing = pairing_of(setting);
  const std::string none = setting.instead.empty() || setting.instead == "none"
                               ? "no (NoPE)"
                               : "no (" + setting.instead + ")";
  const std::string rotated =
      setting.rotates
          ? fmt::format("{}-{} of {}", setting.first_channel,
                        setting.first_channel + setting.rotary_dim - 1, setting.head_dim)
          : "-";
  const std::string method = method_of(setting);
  const std::string stretch = !setting.rotates || method == "plain RoPE" ? "-"
                              : numbers.factor == 1
                                  ? method
                                  : fmt::format("{} x {}", method, number(numbers.factor));
  const double scale = setting.rotates ? numbers.turned_scale : numbers.scale;
  return {{"layers", setting.layer_numbers},
          {"kind", setting.layers},
          {"rotates", !setting.rotates  ? none
                      : pairing.empty() ? "yes"
                                        : pairing},
          {"rotated", rotated},
          {"base", setting.rotates ? json(setting.base) : json()},
          {"stretch", stretch},
          {"window", window_of(setting)},
          {"scale", scale == 0 ? json() : json(scale)},
          {"verdict", verdict_of(report, setting)}};
}

}  // namespace

std::string DoctorReport::verdict() const {
  if (!result.findings.empty()) return "findings";
  return result.unjudged.empty() ? "sound" : "cannot be judged";
}

int DoctorReport::exit_status() const {
  return !result.findings.empty() ? 1 : result.unjudged.empty() ? 0 : 2;
}

void print(const DoctorReport& report) {
  lab::print("{}, against {}\n\n", report.subject, report.against);
  print_groups(subjects_of(report));
  for (const ConfigFinding& found : report.result.findings) {
    lab::print("{}: {}, layers {}\n", severity_of(found), found.field, layers_of(found));
    print_wrapped("expected      " + found.expected);
    print_wrapped("got           " + found.got);
    if (!found.cause.empty()) print_wrapped("cause         " + found.cause);
    lab::print("\n");
  }
  for (const std::string& why : report.result.unjudged) print_wrapped("not judged    " + why);
  for (const std::string& note : report.result.notes) print_wrapped("note          " + note);
  const size_t count = report.result.findings.size();
  const std::string counted = fmt::format("{} finding{}", count, count > 1 ? "s" : "");
  lab::print("verdict: {}\n", count == 0 ? report.verdict() : counted);
}

std::string json_text(const DoctorReport& report) {
  json layers = json::array(), findings = json::array(), unjudged = json::array();
  for (const Subject& subject : subjects_of(report)) layers.push_back(row_of(report, subject));
  for (const ConfigFinding& found : report.result.findings) {
    json& entry = findings.emplace_back(json{{"layers", found.layers},
                                             {"field", found.field},
                                             {"expected", found.expected},
                                             {"got", found.got},
                                             {"cause", found.cause},
                                             {"severity", severity_of(found)}});
    if (!found.kind.empty()) entry["kind"] = found.kind;
  }
  for (const std::string& why : report.result.unjudged) {
    unjudged.push_back({{"layers", json::array()}, {"what", "layers"}, {"why", why}});
  }
  return json({{"schema", 1},
               {"subject", report.subject},
               {"against", report.against},
               {"versions", {{"sextant", std::string(version())}}},
               {"verdict", report.verdict()},
               {"layers", layers},
               {"findings", findings},
               {"unjudged", unjudged},
               {"notes", report.result.notes}})
      .dump(1, ' ', false, json::error_handler_t::replace);
}

chart::Report page_of(const DoctorReport& report) {
  chart::Table layers{.caption = "Layers",
                      .columns = {{"layers"},
                                  {"rotates"},
                                  {"rotated channels"},
                                  {"base"},
                                  {"stretch"},
                                  {"window"},
                                  {"verdict"}}};
  for (const Subject& subject : subjects_of(report)) {
    const json row = row_of(report, subject);
    const bool good = row["verdict"] == "ok";
    const std::string kind = subject.setting.layers;
    layers.rows.push_back(
        {chart::words((kind.empty() ? "" : kind + ": ") + layers_of(subject.setting.layer_numbers)),
         chart::words(row["rotates"]), chart::words(row["rotated"]),
         chart::words(subject.setting.rotates ? number(subject.setting.base) : "-"),
         chart::words(row["stretch"]), chart::words(row["window"]),
         chart::words(row["verdict"], good ? chart::Tone::kGood : chart::Tone::kBad)});
  }
  chart::Report page{
      .title = "sextant doctor: " + report.subject,
      .lead = "Compared with " + report.against + ". Verdict: **" + report.verdict() + "**.",
      .opening = {"", {layers}},
      .sections = {},
      .footer = "sextant " + std::string(version())};
  if (!report.result.findings.empty()) {
    chart::Table findings{.columns = {{"layers"}, {"field"}, {"expected"}, {"got"}, {"cause"}},
                          .stacks = true};
    for (const ConfigFinding& found : report.result.findings) {
      findings.rows.push_back(
          {chart::words(layers_of(found)), chart::words(found.field, chart::Tone::kBad),
           chart::words(found.expected), chart::words(found.got), chart::words(found.cause)});
    }
    page.sections.push_back({"Findings", {findings}});
  }
  std::string notes;
  for (const auto* lines : {&report.result.unjudged, &report.result.notes}) {
    for (const std::string& line : *lines) notes += "- " + line + "\n";
  }
  if (!notes.empty()) page.sections.push_back({"Notes", {chart::Prose{notes}}});
  return page;
}

}  // namespace sextant::cli
