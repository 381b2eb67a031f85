// Files are read and compared here. Of a model that ran, the JSON has its differences from the
// configuration by layer: equal ones are merged, and warnings on the configuration join them. Each
// group of layers then gets a line for each verdict.
#include "sextant/cli/doctor/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "sextant/base/error.h"
#include "sextant/base/reason.h"
#include "sextant/cli/explain/subject.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/yaml.h"
#include "sextant/rope_config/config_path.h"
#include "sextant/rope_config/families/family.h"
#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/version.h"

namespace sextant {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ConfigFinding, layers, kind, field, expected, got, cause)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Unjudged, layers, what, why)
}  // namespace sextant

namespace sextant::cli {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JudgedFact, fact, status, layers, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LayerRow, layers, kind, rotates, rotated, base, stretch, window,
                                   scale, verdict)
namespace {

// A model that ran, as python/sextant/doctor/examine.py writes it.
struct Examined {
  std::string subject, against;
  std::vector<std::pair<std::string, std::string>> versions;
  std::string config;                        // the text of the config.json
  int64_t length = 0, longest = 0;           // of the run, and max_position_embeddings
  std::vector<std::vector<int64_t>> layers;  // of each group of the configuration
  std::vector<ConfigFinding> findings;       // of one layer each, or of all
  std::vector<Unjudged> unjudged;
  std::vector<std::string> notes;
  std::vector<JudgedFact> facts;  // files of 0.2.0's first examiners have none
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Examined, subject, against, versions, config, length, longest,
                                   layers, findings, unjudged, notes)

Examined parse_examined(const std::string& text, const std::string& where) {
  const nlohmann::json examined = checked_json(text, where);
  try {
    Examined model = examined.get<Examined>();
    if (examined.contains("facts")) model.facts = examined["facts"];
    return model;
  } catch (const std::exception& error) {
    fail(where + ": " + reason_of(error));
  }
}

// The fields of findings in the order of a report.
constexpr std::array kFields = {"configuration", "rotates",    "rotated channels",
                                "pairing",       "direction",  "frequencies",
                                "positions",     "precision",  "attention factor",
                                "softmax scale", "window",     "chunk",
                                "mask",          "padding",    "attention",
                                "cache",         "generation", "key heads",
                                "norms",         "softcap",    "sinks",
                                "query law",     "layers"};

void sort_findings(std::vector<ConfigFinding>& findings) {
  std::ranges::stable_sort(findings, {}, [](const ConfigFinding& x) {
    return std::tuple(x.warning, std::ranges::find(kFields, x.field) - kFields.begin(), x.layers);
  });
}

// Whether a finding concerns a layer of a group. layer: -1 if layers have no numbers.
bool concerns(const ConfigFinding& found, const RopeConfig& group, int64_t layer) {
  if (!found.kind.empty()) return found.kind == group.layers;
  return found.layers.empty() || layer < 0 || std::ranges::count(found.layers, layer) > 0;
}

std::string verdict_of(const ConfigComparison& result, const RopeConfig& group, int64_t layer) {
  std::set<std::string> fields;
  for (const ConfigFinding& found : result.findings)
    if (concerns(found, group, layer)) fields.insert(found.field);
  for (const Unjudged& unjudged : result.unjudged)
    if (std::ranges::count(unjudged.layers, layer) > 0) fields.insert("not judged");
  return fields.empty() ? "ok" : fmt::format("{}", fmt::join(fields, ", "));
}

LayerRow row_of(const RopeConfig& group, const Explained& numbers) {
  const bool rotates = group.rotates;
  return {.kind = shortened(group.layers, 40),
          .rotates = rotates_of(group),
          .rotated = rotates
                         ? fmt::format("{}-{} of {}", group.first_channel,
                                       group.first_channel + group.rotary_dim - 1, group.head_dim)
                         : "-",
          .base = rotates ? group.base : 0,
          .stretch = stretch_of_group(group, numbers),
          .window = window_of(group),
          .scale = rotates ? numbers.rotated_scale : numbers.scale};
}

// Adds the lines of a group: one for its layers of each verdict.
void add_rows(DoctorReport& report, const RopeConfig& group, const Explained& numbers,
              const std::vector<int64_t>& layers) {
  std::map<std::string, std::vector<int64_t>> by_verdict;
  for (const int64_t layer : layers)
    by_verdict[verdict_of(report.result, group, layer)].push_back(layer);
  if (layers.empty()) by_verdict[verdict_of(report.result, group, -1)] = {};
  for (const auto& [verdict, numbered] : by_verdict) {
    LayerRow& row = report.rows.emplace_back(row_of(group, numbers));
    row.layers = numbered;
    row.verdict = verdict;
  }
}

// A warning if the model's length is beyond that which YaRN reaches. Llama 3's stretch is trained
// further.
void doubt_length(const ReadRopeConfig& read, int64_t longest, ConfigComparison& to) {
  for (size_t g = 0; g < read.configs.size(); ++g) {
    const RopeConfig& group = read.configs[g];
    const auto original = static_cast<double>(group.scaling.original_length);
    const double factor = read.explained[g].factor;
    const auto reach = static_cast<int64_t>(std::llround(factor * original));
    if (!group.rotates || group.scaling.type != "yarn" || reach == 0 ||
        static_cast<double>(longest) <= 1.01 * static_cast<double>(reach)) {
      continue;
    }
    to.findings.push_back(
        {group.layer_numbers, group.layer_numbers.empty() ? group.layers : "", "configuration",
         fmt::format("max_position_embeddings up to {}, which {} with factor {:g} reaches", reach,
                     method_of(group), factor),
         std::to_string(longest), "angles beyond that length were not seen in training", true});
  }
}

constexpr const char* kNotRun = "files are judged by their text, and none was run";

std::vector<std::pair<std::string, std::string>> versions_of_files() {
  return {{"sextant", std::string(version())}};
}

// The source of the meaning of a file by itself.
std::string code_of(const ReadRopeConfig& read) {
  if (read.dialect == "GGUF") return llama_cpp_version() + "'s code for this architecture";
  if (read.json.empty()) return "the engine of these flags";
  const std::string type = read.configs.empty() ? "" : read.configs.front().model_type;
  const Family* family = find_family(type);
  return family == nullptr ? "the general meaning of its fields"
                           : family->origin() + "'s code for " + type;
}

// A reader's message without the name of the file, which the report has.
std::string without_file(const std::string& message, const std::string& file) {
  return message.starts_with(file + ": ") ? message.substr(file.size() + 2) : message;
}

}  // namespace

std::string DoctorReport::verdict() const {
  if (!result.findings.empty()) return "findings";
  return result.unjudged.empty() ? "sound" : "cannot be judged";
}

int DoctorReport::exit_status(bool strict) const {
  const bool fails = std::ranges::any_of(
      result.findings, [&](const ConfigFinding& found) { return strict || !found.warning; });
  return fails ? 1 : result.unjudged.empty() ? 0 : 2;
}

std::string DoctorReport::facts_text() const {
  std::string text;
  for (const char* status : {"as configured", "differs", "not measured"}) {
    std::vector<std::string> names;
    for (const JudgedFact& fact : facts)
      if (fact.status == status) names.push_back(fact.fact);
    if (names.empty()) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", fmt::join(names, ", "), status);
  }
  return text;
}

DoctorReport unexamined(const std::string& subject, const std::string& file,
                        const std::string& why) {
  DoctorReport report{.subject = subject,
                      .against = "its configuration",
                      .versions = versions_of_files(),
                      .file = file};
  add_unjudged(report.result, "model", why, {});
  return report;
}

DoctorReport examine_files(const std::vector<std::string>& paths, double base) {
  const Overrides overrides{.base = base, .only_missing = true};
  const std::string& path = paths.back();
  DoctorReport report{.subject = path,
                      .against = paths[0],
                      .versions = versions_of_files(),
                      .file = path == "-" ? "" : config_path(path),
                      .facts = {{"model", "not measured", {}, kNotRun}}};
  ReadRopeConfig read;
  try {
    read = read_rope_config(path, overrides, read_yaml);
  } catch (const Error& error) {
    if (paths.size() == 2) throw;
    report.against = "the formats that explain reads";
    report.result.findings.push_back({{},
                                      "",
                                      "configuration",
                                      "a configuration that can be read",
                                      without_file(reason_of(error), report.file),
                                      "",
                                      false});
    return report;
  }
  if (paths.size() == 2) {
    report.result = compare_configs(read_rope_config(paths[0], overrides, read_yaml), read);
  } else {
    report.against = code_of(read);
    report.result = check_config(read);
    const bool is_json = !read.json.empty() && !read.configs.empty();
    if (is_json) doubt_length(read, read.configs.front().max_length, report.result);
  }
  report.place = read.place;
  sort_findings(report.result.findings);
  for (size_t g = 0; g < read.configs.size(); ++g)
    add_rows(report, read.configs[g], read.explained[g], read.configs[g].layer_numbers);
  return report;
}

DoctorReport report_of(const std::string& text, const std::string& where) {
  const Examined model = parse_examined(text, where);
  DoctorReport report{.subject = model.subject,
                      .against = model.against,
                      .versions = model.versions,
                      .facts = model.facts};
  std::error_code ignored;
  const std::filesystem::path file = std::filesystem::path(model.subject) / "config.json";
  if (std::filesystem::is_regular_file(file, ignored)) report.file = file.string();
  ConfigComparison& result = report.result;
  ReadRopeConfig read;
  if (!model.config.empty()) {
    read = read_rope_config_bytes(model.config, {.length = model.length});
    report.place = read.place;
    result = check_config(read);
    doubt_length(read, model.longest, result);
  }
  for (ConfigFinding found : model.findings) {
    const auto layers = std::exchange(found.layers, {});
    add_finding(result, found, layers.empty() ? std::nullopt : std::optional(layers[0]));
  }
  for (const Unjudged& entry : model.unjudged)
    add_unjudged(result, entry.what, entry.why,
                 entry.layers.empty() ? std::nullopt : std::optional(entry.layers[0]));
  sort_findings(result.findings);
  result.notes.insert(result.notes.end(), model.notes.begin(), model.notes.end());
  for (size_t g = 0; g < std::min(model.layers.size(), read.configs.size()); ++g) {
    if (model.layers[g].empty()) continue;
    add_rows(report, read.configs[g], read.explained[g], model.layers[g]);
  }
  return report;
}

std::string json_text(const DoctorReport& report) {
  using nlohmann::json;
  json layers = report.rows, findings = report.result.findings, versions = json::object();
  for (json& row : layers) {
    for (const char* unknown : {"base", "scale"})
      if (row[unknown] == 0) row[unknown] = nullptr;
  }
  for (size_t n = 0; n < findings.size(); ++n)
    findings[n]["severity"] = severity_of(report.result.findings[n]);
  for (const auto& [name, version] : report.versions) versions[name] = version;
  return json({{"schema", 2},
               {"subject", report.subject},
               {"against", report.against},
               {"versions", versions},
               {"verdict", report.verdict()},
               {"layers", layers},
               {"findings", findings},
               {"unjudged", report.result.unjudged},
               {"notes", report.result.notes},
               {"facts", report.facts}})
      .dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sextant::cli
