// Counts the calls of operator new of this program, from all threads.
#pragma once

#include <cstdint>

namespace sextant::bench {

int64_t allocations();

}  // namespace sextant::bench
