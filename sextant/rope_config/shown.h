// Foreign values in messages: they go to a terminal, so they are kept short and in ASCII.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant {

std::string shown(const nlohmann::json& value, size_t most = 60);

}  // namespace sextant
