// Unknown fields about rotary positions or head sizes are refused, since they may change
// everything.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/rope_config/families/family.h"

namespace sextant {

// Throws an Error that names all unknown fields, the most important ones first.
void refuse_unknown_fields(const nlohmann::json& config, const Family* family,
                           const std::string& where);

}  // namespace sextant
