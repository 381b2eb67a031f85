// Models that rotate nothing, by what their file says itself.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant {

// The positions that a model has instead, by our name of the method; empty: it may rotate.
std::string other_positions(const nlohmann::json& config);

// The parameters of such a method in the file: " alibi_bias_max 8".
std::string parameters_of_others(const nlohmann::json& config);

}  // namespace sextant
