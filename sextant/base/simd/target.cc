#include "sextant/base/simd/target.h"

#include <cstdint>

#include "sextant/base/simd/targets.h"

// targets.h comes first.
#include <hwy/targets.h>

namespace sextant {

std::string_view simd_target() {
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(usable & -usable);  // better targets are lower bits
}

}  // namespace sextant
