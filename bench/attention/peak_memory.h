// How much memory a piece of work needs beyond what is there when it starts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace sextant::bench {

// Bytes by which the resident memory of the process grew at its highest while `work` ran. Free
// memory is given back to the system first, so what the allocator keeps is not mistaken for memory
// that the work did not need. Nothing where the kernel does not let a process reset its high-water
// mark.
std::optional<int64_t> peak_memory(const std::function<void()>& work);

}  // namespace sextant::bench
