// The SIMD instructions in use.
#pragma once

#include <string_view>

namespace sextant {

// Highway's name of the target that kernels run on this machine: the best one that it has, of those
// that are built (simd_targets.h). "AVX3_SPR"
std::string_view simd_target();

}  // namespace sextant
