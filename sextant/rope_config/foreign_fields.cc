#include "sextant/rope_config/foreign_fields.h"

#include <string_view>

#include "sextant/rope_config/hugging_face.h"

namespace sextant {
namespace {

using nlohmann::json;

// A number that is not in JSON, as a text.
std::string quoted(const std::string& number) { return '"' + number + " (no JSON)\""; }

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
      result += quoted(text.substr(at, length));
      at += length - 1;
    }
  }
  return result;
}

}  // namespace

std::string shown(const nlohmann::json& value, size_t most) {
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

json parse_json(const std::string& text, const std::string& where) {
  return checked_json(quoted_nonfinite(text), where);
}

std::string json_as_python_writes_it(const json& value) {
  std::string text = value.dump(2, ' ', false, json::error_handler_t::replace);
  for (const std::string word : {"NaN", "Infinity", "-Infinity"}) {
    const std::string in_json = quoted(word);
    for (size_t at = text.find(in_json); at != std::string::npos; at = text.find(in_json, at)) {
      text.replace(at, in_json.size(), word);
    }
  }
  return text;
}

}  // namespace sextant
