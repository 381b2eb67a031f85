// Readers of the laboratory's files: arms, results and records, for the list in readers.h.
#pragma once

#include <span>

#include "fuzz/readers.h"

namespace sextant::fuzz {

std::span<const Reader> lab_readers();

}  // namespace sextant::fuzz
