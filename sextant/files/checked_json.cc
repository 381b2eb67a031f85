#include "sextant/files/checked_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"

namespace sextant {
namespace {

using nlohmann::json;

std::string in_quotes(const json& word) {
  return word.dump(-1, ' ', true, json::error_handler_t::replace);
}

// The last key before a byte; empty if there is none.
std::string key_before(const std::string& text, size_t byte) {
  const size_t colon = text.rfind(':', byte), quote = text.rfind('"', colon);
  if (colon == std::string::npos || quote == std::string::npos || quote == 0) return "";
  const size_t open = text.rfind('"', quote - 1);
  if (open == std::string::npos) return "";
  return text.substr(open + 1, std::min<size_t>(quote - open - 1, 60));
}

}  // namespace

json checked_json(const std::string& text, const std::string& where) {
  std::vector<std::set<std::string>> around;  // keys of enclosing objects; JSON allows repeats
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= kDeepestJson) {
      fail(where + ": expected at most " + std::to_string(kDeepestJson) +
           " objects and lists within each other, but got more");
    }
    if (event == json::parse_event_t::object_start) around.emplace_back();
    if (event == json::parse_event_t::object_end) around.pop_back();
    if (event == json::parse_event_t::key &&
        !around.back().insert(parsed.get<std::string>()).second) {
      fail(where + ": " + in_quotes(parsed) + ": expected once, but got two");
    }
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::parse_error& error) {
    // nlohmann gives a byte; users need a key.
    const size_t byte = std::min(error.byte, text.size());
    const std::string key = key_before(text, byte);
    fail(where + ": " + (key.empty() ? "" : in_quotes(key) + ": ") +
         "expected JSON, but could not read it at byte " + std::to_string(byte));
  } catch (const json::exception& error) {  // "... number overflow parsing '1e999'"
    const std::string what = error.what(), number = what.substr(what.find('\'') + 1, 60);
    fail(where + ": expected JSON with numbers that are finite as float64, but got " +
         number.substr(0, number.find('\'')));
  }
}

json json_or_word(const std::string& word) {
  try {
    return checked_json(word, "");
  } catch (const Error&) {
    return word;
  }
}

json checked_json_object(const std::string& text, const std::string& where) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string::npos && text[start] == '{') return checked_json(text, where);
  fail(where + ": expected a JSON object, but got " + text.substr(0, 200));
}

json read_json(const std::filesystem::path& path) {
  return naming_file(path,
                     [&] { return checked_json(read_file(path, kMostJsonBytes), path.string()); });
}

void write_json(const std::filesystem::path& path, const json& json) {
  write_file(path, json.dump(2) + "\n");
}

}  // namespace sextant
