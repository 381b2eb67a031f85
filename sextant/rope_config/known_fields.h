// Fields about rotary positions, or the size of heads, that nobody here knows may change
// everything.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/rope_config/families/family.h"

namespace sextant {

// Throws Error that names all such fields, the likeliest to matter first.
void refuse_unknown_fields(const nlohmann::json& config, const Family* family,
                           const std::string& where);

}  // namespace sextant
