// Counts calls of operator new in a program that links counted_allocations, which replaces it.
#pragma once

#include <cstdint>

namespace sextant::testing {

// The calls so far, of all threads.
int64_t allocations();

}  // namespace sextant::testing
