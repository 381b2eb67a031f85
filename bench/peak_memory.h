// The peak memory of a call beyond the memory at its start.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace sextant::bench {

// The peak growth in bytes of the process's resident memory while `work` ran. Free memory is
// returned to the system first, so that reused memory of the allocator counts as well. Empty if the
// kernel does not let a process reset its high-water mark.
std::optional<int64_t> peak_memory(const std::function<void()>& work);

}  // namespace sextant::bench
