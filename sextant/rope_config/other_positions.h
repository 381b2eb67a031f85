// Models without rotation, as far as the file itself shows it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant {

// The model's position method instead of rotation, by our name; empty if it may rotate.
std::string other_positions(const nlohmann::json& config);

// The parameters of that method in the file: " alibi_bias_max 8".
std::string parameters_of_others(const nlohmann::json& config);

}  // namespace sextant
