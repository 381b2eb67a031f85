// Each finding of each report becomes an annotation: a rule, a title, a message and a place. Both
// forms are written from these.
#include "sextant/cli/doctor/annotations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sextant/base/error.h"
#include "sextant/cli/doctor/key_line.h"
#include "sextant/files/read_file.h"
#include "sextant/version.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kNotJudged = "not judged";

struct Annotation {
  std::string level;  // "error", "warning", or "none" if something is not judged
  std::string field, title, message;
  std::string file;  // relative to this folder, if it is in it; empty: not known
  int64_t line = 0;  // 0: not known
};

std::string shown_path(const std::string& file) {
  const fs::path path = fs::path(file).lexically_normal();
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (error || !path.is_absolute()) return path.generic_string();
  const fs::path relative = path.lexically_relative(here);
  const bool inside = !relative.empty() && *relative.begin() != "..";
  return (inside ? relative : path).generic_string();
}

// The text of a config.json or of flags; empty if there is none.
std::string text_of(const std::string& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return "";
  try {
    const std::string text = read_start(file, kMostJsonBytes);
    return text.starts_with("GGUF") ? "" : text;
  } catch (const Error&) {
    return "";
  }
}

void add_annotations(const DoctorReport& report, std::vector<Annotation>& to) {
  const std::string text = text_of(report.file);
  const std::string file = report.file.empty() ? "" : shown_path(report.file);
  for (const ConfigFinding& found : report.result.findings) {
    std::string message = "expected: " + found.expected + "\ngot: " + found.got;
    if (!found.cause.empty()) message += "\ncause: " + found.cause;
    to.push_back({severity_of(found), found.field, found.field + ", layers " + layers_of(found),
                  message, file, line_of(found, text, report.place)});
  }
  for (const Unjudged& entry : report.result.unjudged) {
    to.push_back({"none", kNotJudged, kNotJudged, sentence_of(entry), file,
                  line_of({.layers = {},
                           .kind = {},
                           .field = entry.what,
                           .expected = {},
                           .got = entry.why,
                           .cause = {}},
                          text, report.place)});
  }
}

std::vector<Annotation> annotations_of(const std::vector<DoctorReport>& reports) {
  std::vector<Annotation> all;
  for (const DoctorReport& report : reports) add_annotations(report, all);
  return all;
}

// Text of a workflow command; in properties, `:` and `,` are escaped as well.
std::string escaped(std::string_view text, bool property) {
  std::string result;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    result += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return result;
}

std::string command_of(const Annotation& note) {
  std::string properties;
  if (!note.file.empty()) {
    properties = "file=" + escaped(note.file, true) + ",";
    if (note.line > 0) properties += fmt::format("line={},", note.line);
  }
  return fmt::format("::{} {}title={}::{}\n", note.level == "warning" ? "warning" : "error",
                     properties, escaped("sextant doctor: " + note.title, true),
                     escaped(note.message, false));
}

// "attention-factor".
std::string rule_of(const Annotation& note) {
  std::string id = note.field;
  std::ranges::replace(id, ' ', '-');
  return id;
}

// A path as a reference of RFC 3986.
std::string uri_of(const std::string& path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (std::isalnum(byte) != 0 && byte < 128) ||
                       std::string_view("/-._~").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return uri;
}

json location_of(const Annotation& note) {
  json artifact = {{"uri", uri_of(note.file)}};
  if (!note.file.starts_with('/')) artifact["uriBaseId"] = "%SRCROOT%";
  json place = {{"artifactLocation", artifact}};
  if (note.line > 0) place["region"] = {{"startLine", note.line}};
  return {{"physicalLocation", place}};
}

json rule_object(const Annotation& note) {
  const json text = {{"text", note.field == kNotJudged
                                  ? "A quantity could not be judged, for a reason."
                                  : "Another " + note.field + " than the configuration means."}};
  return {{"id", rule_of(note)},
          {"shortDescription", text},
          {"fullDescription", text},
          {"help", {{"text", "Sextant's page on sextant doctor (docs/doctor.md)."}}}};
}

}  // namespace

std::string github_text(const std::vector<DoctorReport>& reports) {
  std::string text;
  size_t errors = 0, warnings = 0, open = 0;
  for (const Annotation& note : annotations_of(reports)) {
    text += command_of(note);
    ++(note.level == "error" ? errors : note.level == "warning" ? warnings : open);
  }
  return text + fmt::format("sextant doctor: reports {}, errors {}, warnings {}, not judged {}\n",
                            reports.size(), errors, warnings, open);
}

std::string sarif_text(const std::vector<DoctorReport>& reports, int status) {
  json rules = json::array(), results = json::array();
  for (const Annotation& note : annotations_of(reports)) {
    const auto same = std::ranges::find_if(
        rules, [&](const json& rule) { return rule.at("id") == rule_of(note); });
    const auto index = same - rules.begin();
    if (same == rules.end()) rules.push_back(rule_object(note));
    json result = {{"ruleId", rule_of(note)},
                   {"ruleIndex", index},
                   {"level", note.level},
                   {"message", {{"text", note.title + "\n" + note.message}}}};
    if (note.level == "none") result["kind"] = "open";
    if (!note.file.empty()) result["locations"] = json::array({location_of(note)});
    results.push_back(result);
  }
  const json driver = {{"name", "sextant doctor"},
                       {"version", std::string(version())},
                       {"semanticVersion", std::string(version())},
                       {"rules", rules}};
  const json invocation = {{"executionSuccessful", status != 2}, {"exitCode", status}};
  return json({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
               {"version", "2.1.0"},
               {"runs", json::array({{{"tool", {{"driver", driver}}},
                                      {"invocations", json::array({invocation})},
                                      {"columnKind", "utf16CodeUnits"},
                                      {"results", results}}})}})
      .dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sextant::cli
