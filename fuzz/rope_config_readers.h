// Readers of configurations and of the table of model families, for the list in readers.h.
#pragma once

#include <span>

#include "fuzz/readers.h"

namespace sextant::fuzz {

std::span<const Reader> rope_config_readers();

}  // namespace sextant::fuzz
