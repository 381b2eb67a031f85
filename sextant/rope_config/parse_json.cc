#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/rope_config/hugging_face.h"

namespace sextant {

using nlohmann::json;

const std::string kNotJson = " (no JSON)";
// The largest nesting depth: copying and printing deeper values would exhaust the stack.
constexpr int kDeepest = 64;

namespace {

// Python writes NaN and Infinity, which JSON lacks. They become strings, which no field about
// positions accepts.
std::string quoted_nonfinite(const std::string& text) {
  std::string result;
  bool inside = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (inside && c == '\\') {
      result += text.substr(at, 2);
      ++at;
      continue;
    }
    if (c == '"') inside = !inside;
    size_t length = 0;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (!inside && text.compare(at, word.size(), word) == 0) length = word.size();
    }
    if (length == 0) {
      result += c;
    } else {
      result += '"' + text.substr(at, length) + kNotJson + '"';
      at += length - 1;
    }
  }
  return result;
}

}  // namespace

json parse_json(const std::string& original, const std::string& where) {
  const std::string text = quoted_nonfinite(original);
  std::vector<std::set<std::string>> around;  // keys of enclosing objects; JSON allows repeats
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest) {
      fail(where + ": expected at most " + std::to_string(kDeepest) +
           " objects and lists within each other, but got more");
    }
    if (event == json::parse_event_t::object_start) around.emplace_back();
    if (event == json::parse_event_t::object_end) around.pop_back();
    if (event == json::parse_event_t::key &&
        !around.back().insert(parsed.get<std::string>()).second) {
      fail(where + ": " + parsed.dump(-1, ' ', true, json::error_handler_t::replace) +
           ": expected once, but got two");
    }
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::exception& error) {
    // nlohmann gives a byte; users need a key.
    const auto* at = dynamic_cast<const json::parse_error*>(&error);
    const size_t byte = std::min(at ? at->byte : 0, text.size());
    const size_t colon = text.rfind(':', byte), quote = text.rfind('"', colon);
    std::string key;
    if (colon != std::string::npos && quote != std::string::npos && quote > 0) {
      const size_t open = text.rfind('"', quote - 1);
      if (open != std::string::npos)
        key = text.substr(open + 1, std::min<size_t>(quote - open - 1, 60));
    }
    fail(where + ": " +
         (key.empty() ? "" : json(key).dump(-1, ' ', true, json::error_handler_t::replace) + ": ") +
         "expected JSON, but could not read it at byte " + std::to_string(byte));
  }
}

std::string json_as_python_writes_it(const json& value) {
  std::string text = value.dump(2, ' ', false, json::error_handler_t::replace);
  for (const std::string word : {"NaN", "Infinity", "-Infinity"}) {
    const std::string quoted = '"' + word + kNotJson + '"';
    for (size_t at = text.find(quoted); at != std::string::npos; at = text.find(quoted, at)) {
      text.replace(at, quoted.size(), word);
    }
  }
  return text;
}

}  // namespace sextant
