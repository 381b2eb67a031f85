// Each finding of each report becomes an annotation: a rule, a title, a message and a place. Both
// forms are written from these.
//
// A finding names its key in words: "rope_scaling: factor: expected ...". The first word that is a
// key of the file gives the line, and further words lead into its object. Where no word is a key,
// the finding's field has keys that decide it.
#include "sextant/cli/doctor/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
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
    ConfigFinding asked;
    asked.field = entry.what;
    asked.got = entry.why;
    to.push_back({"none", kNotJudged, kNotJudged, sentence_of(entry), file,
                  line_of(asked, text, report.place)});
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

struct Key {
  std::string path, name;  // "text_config.rope_theta", "rope_theta"
  int64_t line = 0;
};

// The place of the quote that ends the string which begins at `open`; the text's size if none does.
size_t end_of_string(const std::string& text, size_t open) {
  size_t at = open + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at, text.size());
}

// The keys in the order of the file. The text may be damaged.
std::vector<Key> keys_of(const std::string& text) {
  std::vector<Key> keys;
  std::vector<std::string> around;  // the paths of the keys whose objects are open
  std::string last;
  int64_t line = 1;
  for (size_t at = 0; at < text.size() && around.size() <= size_t{kDeepestJson}; ++at) {
    if (text[at] == '\n') ++line;
    if (text[at] == '{') around.push_back(last);
    if (text[at] == '}' && !around.empty()) {
      last = around.back();
      around.pop_back();
    }
    if (text[at] != '"') continue;
    const size_t end = end_of_string(text, at);
    const std::string name = text.substr(at + 1, end - at - 1);
    const size_t next = text.find_first_not_of(" \t\r\n", end + 1);
    at = end;
    if (next == std::string::npos || text[next] != ':') continue;
    const std::string outer = around.empty() ? "" : around.back();
    last = outer.empty() ? name : outer + "." + name;
    keys.push_back({last, name, line});
  }
  return keys;
}

bool is_inside(const Key& key, const std::string& path) {
  return path.empty() || key.path.starts_with(path + ".");
}

// The key of a name: of the language model before others, of outer objects before inner ones.
const Key* find_key(const std::vector<Key>& keys, std::string_view name, const std::string& place) {
  const auto rank = [&](const Key& key) {
    return std::tuple(key.name != name, !is_inside(key, place), std::ranges::count(key.path, '.'));
  };
  const auto best = std::ranges::min_element(keys, {}, rank);
  return best == keys.end() || best->name != name ? nullptr : &*best;
}

const Key* find_inside(const std::vector<Key>& keys, std::string_view name, const Key& outer) {
  const auto found = std::ranges::find_if(
      keys, [&](const Key& key) { return key.name == name && is_inside(key, outer.path); });
  return found == keys.end() ? nullptr : &*found;
}

// Keys, flags and the words between.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-') {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

// Words without an underscore, such as "type" and "factor", are keys only inside a key that was
// named before.
const Key* named_key(const std::vector<Key>& keys, const std::string& message,
                     const std::string& place) {
  const Key* found = nullptr;
  for (const std::string& word : words_of(message)) {
    if (found != nullptr) {
      const Key* inner = find_inside(keys, word, *found);
      if (inner == nullptr) return found;
      found = inner;
    } else if (word.find('_') != std::string::npos) {
      found = find_key(keys, word, place);
    }
  }
  return found;
}

// Phrases of findings, and the keys that decide them.
constexpr std::pair<const char*, const char*> kDeciding[] = {
    {"the stretch", "rope_scaling rope_parameters"},
    {"the base is", "rope_theta rotary_emb_base rope_local_base_freq"},
    {"frequencies", "rope_scaling rope_parameters rope_theta rotary_emb_base"},
    {"attention factor", "attention_factor rope_scaling rope_parameters"},
    {"rotated channels", "partial_rotary_factor rotary_pct rotary_dim head_dim hidden_size"},
    {"softmax scale", "query_pre_attn_scalar attention_multiplier head_dim hidden_size"},
    {"window", "sliding_window window_size layer_types"},
    {"chunk", "attention_chunk_size dual_chunk_attention_config"},
    {"query law", "attn_temperature_tuning use_logn_attn"},
    {"rotates", "no_rope_layers no_rope_layer_interval layer_types"},
    {"layers", "num_hidden_layers layer_types"}};

const Key* deciding_key(const std::vector<Key>& keys, const ConfigFinding& finding,
                        const std::string& place) {
  const std::string said = finding.field + " " + finding.cause + " " + finding.got;
  for (const auto& [phrase, names] : kDeciding) {
    if (said.find(phrase) == std::string::npos) continue;
    for (const std::string& name : words_of(names))
      if (const Key* key = find_key(keys, name, place)) return key;
  }
  return nullptr;
}

int64_t line_at(const std::string& text, size_t byte) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(byte), '\n');
}

// The line of the byte in a message of the JSON reader; 0: another message.
int64_t line_of_byte(const std::string& message, const std::string& text) {
  const std::string at_byte = "at byte ";
  const size_t at = message.find(at_byte);
  if (at == std::string::npos) return 0;
  const size_t byte = std::strtoull(message.c_str() + at + at_byte.size(), nullptr, 10);
  return line_at(text, std::min(byte, text.size()));
}

// The line of a message's first flag, a word with a dash; 0: it has none.
int64_t line_of_flag(const std::string& message, const std::string& text) {
  for (const std::string& word : words_of(message)) {
    const size_t at = word.starts_with('-') ? text.find(word) : std::string::npos;
    if (at != std::string::npos) return line_at(text, at);
  }
  return 0;
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

int64_t line_of(const ConfigFinding& finding, const std::string& text, const std::string& place) {
  const std::string message = finding.got + " " + finding.expected + " " + finding.cause;
  if (const int64_t line = line_of_byte(message, text)) return line;
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string::npos || text[start] != '{') return line_of_flag(message, text);
  const std::vector<Key> keys = keys_of(text);
  const Key* key = named_key(keys, message, place);
  if (key == nullptr) key = deciding_key(keys, finding, place);
  return key == nullptr ? 0 : key->line;
}

}  // namespace sextant::cli
