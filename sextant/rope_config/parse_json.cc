#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "sextant/error.h"
#include "sextant/rope_config/hugging_face.h"

namespace sextant {

using nlohmann::json;

json parse_json(const std::string& text, const std::string& where) {
  std::vector<std::set<std::string>> around;  // keys of the objects around: JSON lets them repeat
  const auto once = [&](int, json::parse_event_t event, json& parsed) {
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
    return json::parse(text, once);
  } catch (const json::exception& error) {
    // nlohmann names a byte; people look for a key.
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

}  // namespace sextant
