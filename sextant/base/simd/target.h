// The SIMD target in use.
#pragma once

#include <string_view>

namespace sextant {

// Highway's name of the target that kernels use on this machine, such as "AVX3_SPR": the best
// supported one of those that are compiled (targets.h).
std::string_view simd_target();

}  // namespace sextant
