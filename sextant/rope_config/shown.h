// Foreign values in messages, shortened and in ASCII since they are printed on a terminal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant {

std::string shown(const nlohmann::json& value, size_t most = 60);

}  // namespace sextant
