// sextant explain --json: the explanation as JSON, schema 3, described in docs/explain.md.
#pragma once

#include <string>

#include "sextant/base/export.h"
#include "sextant/rope_config/read_config.h"

namespace sextant {

SEXTANT_API std::string explain_json(const ReadRopeConfig& read);

}  // namespace sextant
