// The line of a configuration that a finding is about, for annotations.
#pragma once

#include <cstdint>
#include <string>

#include "sextant/rope_config/compare_configs.h"

namespace sextant::cli {

// From 1; 0: not known. text: a config.json, also a damaged one, or flags. place: the path of the
// language model's object in it ("text_config"); "": the whole file.
int64_t line_of(const ConfigFinding& finding, const std::string& text, const std::string& place);

}  // namespace sextant::cli
