// Memory that calls one after the other use again.
#pragma once

#include <cstdint>
#include <vector>

#include "sextant/base/aligned_memory.h"
#include "sextant/base/export.h"

namespace sextant {

// Blocks of floats on cache lines of their own, taken one after the other and all given back
// together by reset(). A block keeps its memory for the next call that takes as much. One call at a
// time may use a workspace.
class SEXTANT_API Workspace {
 public:
  // Uninitialised; valid until the next reset().
  float* floats(int64_t count);
  void reset() { taken_ = 0; }
  // Frees the blocks of more than `most` floats; none may be in use.
  void trim(int64_t most);

 private:
  struct Slot {
    AlignedFloats data;
    int64_t size = 0;
  };
  std::vector<Slot> slots_;
  size_t taken_ = 0;
};

}  // namespace sextant
