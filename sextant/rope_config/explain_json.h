// sextant explain --json: the explanation as JSON, schema 2, described in docs/explain.md.
#pragma once

#include <cstdint>
#include <string>

#include "sextant/base/export.h"
#include "sextant/rope_config/read_config.h"

namespace sextant {

// length: as in explain(). Throws Error if a number is out of range.
SEXTANT_API std::string explain_json(const ReadRopeConfig& read, int64_t length);

}  // namespace sextant
