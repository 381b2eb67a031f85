#include "sextant/base/workspace.h"

namespace sextant {

float* Workspace::floats(int64_t count) {
  if (taken_ == slots_.size()) slots_.emplace_back();
  Slot& slot = slots_[taken_++];
  if (slot.size < count) {
    slot.data = {};  // before the new memory is taken
    slot.data = AlignedFloats(count);
    slot.size = count;
  }
  return slot.data.data();
}

void Workspace::trim(int64_t most) {
  for (Slot& slot : slots_)
    if (slot.size > most) slot = {};
}

}  // namespace sextant
