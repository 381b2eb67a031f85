// Scratch memory: one allocation, cut into arrays before any task runs.
#pragma once

#include <cstdint>

#include "sextant/attention/cpu/sizes.h"
#include "sextant/base/aligned_memory.h"

namespace sextant::cpu {

// Cuts arrays from a block of floats. Without a block it only counts, so that the same layout code
// first measures the size and then cuts:
//
//   Arena measure;  layout(measure);  AlignedFloats block(measure.used());
//   Arena arena(block.data());  layout(arena);
class Arena {
 public:
  explicit Arena(float* block = nullptr) : block_(block) {}
  float* floats(int64_t count) { return take<float>(count); }
  // An array with a cache line on either side that may be read and written too.
  float* fenced_floats(int64_t count) {
    float* fence = floats(count + 2 * kLanes);
    return fence ? fence + kLanes : nullptr;
  }
  template <class T>
  T* take(int64_t count) {
    const int64_t at = used_;
    used_ += round_up(count * static_cast<int64_t>(sizeof(T)), kLine) / 4;
    return block_ ? reinterpret_cast<T*>(block_ + at) : nullptr;
  }
  int64_t used() const { return used_; }

 private:
  static constexpr int64_t kLine = 64;  // bytes
  float* block_;
  int64_t used_ = 0;
};

}  // namespace sextant::cpu
