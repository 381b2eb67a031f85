// TOML becomes JSON, which the table of settings reads. Depths are bounded before toml11 parses,
// and places are named in the file's lines.
#include "sextant/lab/plan/settings_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <toml.hpp>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/read_file.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

// toml11 3 (Debian 12) and 4 (Debian 13) differ in a few names.
std::string place(const std::filesystem::path& path, const auto& at) {
  if constexpr (requires { at.line(); }) {
    return fmt::format("{}: line {}, column {}", path.string(), at.line(), at.column());
  } else {
    return fmt::format("{}: line {}, column {}", path.string(), at.first_line_number(),
                       at.first_column_number());
  }
}

const std::string& content(const auto& string) {
  if constexpr (requires { string.str; }) {
    return string.str;
  } else {
    return string;
  }
}

std::string message_at(const std::string& place, const std::string& text, size_t line,
                       size_t column) {
  std::istringstream lines(text);
  std::string got;
  for (size_t n = 0; n < line; ++n) std::getline(lines, got);
  got = got.substr(std::min(column - 1, got.size()));
  return place + ": expected TOML, but got " +
         (got.empty() ? "the end of the line" : start_of(got));
}

// toml11's own words differ between its versions and are no sentences, so what it could not read is
// shown.
std::string message_of(const std::filesystem::path& path, const std::string& text,
                       const auto& error) {
  if constexpr (requires { error.location(); }) {
    const auto& at = error.location();
    return message_at(place(path, at), text, at.line(), at.column());
  } else {
    const auto& at = error.errors().front().locations().front().first;
    return message_at(place(path, at), text, at.first_line_number(), at.first_column_number());
  }
}

// The place of the last character of a string in TOML that begins at `at`.
size_t end_of_string(const std::string& text, size_t at) {
  const bool is_long = text.compare(at, 3, std::string(3, text[at])) == 0;
  const std::string quote = text.substr(at, is_long ? 3 : 1);
  for (at += quote.size(); at < text.size(); ++at) {
    if (!is_long && text[at] == '\n') return at - 1;  // an error, which toml11 finds
    const bool is_escape = text[at] == '\\' && quote[0] == '"';
    at += is_escape;
    if (is_escape || text.compare(at, quote.size(), quote) != 0) continue;
    at += quote.size() - 1;
    // A long string may end in two quotes more.
    const size_t most = is_long ? std::min(at + 2, text.size() - 1) : at;
    while (at < most && text[at + 1] == quote[0]) ++at;
    return at;
  }
  return text.size();
}

// toml11 calls itself for each level of a value, and for each part of a dotted key reads all parts
// before it again. It is given neither many levels nor many parts.
void check_depth(const std::string& text, const std::filesystem::path& path) {
  int depth = 0, parts = 1;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '#') at = std::min(text.find('\n', at), text.size()) - 1;
    if (c == '"' || c == '\'') at = end_of_string(text, at);
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') depth = std::max(0, depth - 1);
    parts = c == '.' ? parts + 1 : c == '\n' || c == '=' || c == ',' || c == '{' ? 1 : parts;
    if (depth <= kDeepestJson && parts <= kDeepestJson) continue;
    const auto line = std::count(text.begin(), text.begin() + static_cast<int64_t>(at), '\n') + 1;
    fail(fmt::format(
        "{}: line {}: expected at most {} {}, but got more", path.string(), line, kDeepestJson,
        depth > kDeepestJson ? "lists and tables within each other" : "parts of a key"));
  }
}

class Converter {
 public:
  explicit Converter(const std::filesystem::path& path) : path_(path) {}

  json convert(const toml::value& value, const std::string& key, int depth = 0) const {
    if (depth > kDeepestJson)
      wrong(value, key, fmt::format("at most {} lists and tables within each other", kDeepestJson));
    if (value.is_boolean()) return value.as_boolean();
    if (value.is_string()) return content(value.as_string());
    if (value.is_integer()) {
      // toml11 3 takes a number out of range for the nearest one.
      if (value.as_integer() == INT64_MAX || value.as_integer() == INT64_MIN)
        wrong(value, key, "an integer of 64 bits");
      // Counts are unsigned, as in the JSON reader.
      if (value.as_integer() >= 0) return static_cast<uint64_t>(value.as_integer());
      return value.as_integer();
    }
    if (value.is_floating()) {
      if (!(std::fabs(value.as_floating()) < DBL_MAX)) wrong(value, key, "a finite number");
      return value.as_floating();
    }
    if (value.is_array()) {
      json array = json::array();
      for (const toml::value& element : value.as_array())
        array.push_back(convert(element, key, depth + 1));
      return array;
    }
    if (!value.is_table()) wrong(value, key, "a number, a word, a list or a table");
    json object = json::object();
    for (const auto& [name, element] : value.as_table()) {
      const std::string inner = key.empty() ? name : fmt::format("{}.{}", key, name);
      object[name] = convert(element, inner, depth + 1);
    }
    return object;
  }

 private:
  [[noreturn]] void wrong(const toml::value& value, const std::string& key,
                          const std::string& expected) const {
    std::ostringstream got;
    got << value.type();
    fail(fmt::format("{}: {}: expected {}, but got {}", place(path_, value.location()), key,
                     expected,
                     value.is_floating() ? fmt::format("{}", value.as_floating()) : got.str()));
  }

  const std::filesystem::path& path_;
};

ArmRequest request_in(const json& arm, const std::string& where) {
  if (arm.is_string()) return request_of(arm.get<std::string>(), where + ": arms");
  JsonFields fields(arm, where + ": arms");
  ArmRequest request;
  fields.read("method", request.method);
  request.label = request.method;
  if (arm.contains("label")) fields.read("label", request.label);
  if (arm.contains("options")) {
    const json& options = fields.at("options");
    if (!options.is_object())
      fail(where + ": arms: options: expected an object, but got " + options.dump());
    request.options = options.dump();
  }
  fields.finish();
  check_label(where + ": arms", request.label);
  return request;
}

}  // namespace

json read_settings_file(const std::filesystem::path& path) {
  if (path.extension() != ".toml") return read_json(path);
  return naming_file(path, [&] { return parse_toml(read_file(path, kMostTomlBytes), path); });
}

json parse_toml(const std::string& text, const std::filesystem::path& path) {
  check_depth(text, path);
  std::istringstream stream(text);
  try {
    json content = Converter(path).convert(toml::parse(stream, path.string()), "");
    static_cast<void>(content.dump());  // throws for a text that is no UTF-8
    return content;
  } catch (const toml::syntax_error& error) {
    fail(message_of(path, text, error));
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {  // toml11 has more of them, and those of the standard library
    fail(path.string() + ": expected TOML in UTF-8, but could not read it");
  }
}

ArmsFile read_arms_file(const std::filesystem::path& path) {
  return arms_file_of(read_settings_file(path), path.string());
}

ArmsFile arms_file_of(const json& content, const std::string& where) {
  JsonFields fields(content, where);
  ArmsFile file;
  const json& arms = fields.at("arms");
  if (!arms.is_array() || arms.empty())
    fail(where + ": arms: expected a list of methods, but got " + arms.dump());
  for (const json& arm : arms) file.arms.push_back(request_in(arm, where));
  for (size_t n = 0; n < file.arms.size(); ++n) {
    for (size_t other = 0; other < n; ++other) {
      if (file.arms[n].label == file.arms[other].label)
        fail(where + ": arms: label: expected each once, but got " + file.arms[n].label + " twice");
    }
  }
  if (content.contains("settings")) {
    const json& settings = fields.at("settings");
    if (!settings.is_object())
      fail(where + ": settings: expected an object, but got " + settings.dump());
    file.settings = settings.dump();
  }
  fields.finish();
  return file;
}

Settings laid_over(const Settings& settings, const std::string& text, const std::string& where) {
  json whole = settings;
  whole.merge_patch(json::parse(text));
  try {
    return whole.get<Settings>();
  } catch (const Error& error) {
    fail(where + ": " + error.what());
  }
}

}  // namespace sextant::lab
