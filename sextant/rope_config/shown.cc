#include "sextant/rope_config/shown.h"

#include <nlohmann/json.hpp>

namespace sextant {

std::string shown(const nlohmann::json& value, size_t most) {
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

}  // namespace sextant
