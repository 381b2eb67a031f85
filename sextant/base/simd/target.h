// The SIMD target in use.
#pragma once

#include <cstdint>
#include <string_view>

namespace sextant {

// Highway's name of the target that kernels use on this machine, such as "AVX3_SPR": the best
// supported one of those that are compiled (targets.h), or of those up to the one that the variable
// SEXTANT_SIMD names. Throws Error if that name is none of them.
std::string_view simd_target();

// Highway's bits of the targets that are compiled and that this machine supports.
int64_t simd_targets();
// Limits the target in use to these bits, for tests; 0: no longer. Not thread-safe.
void limit_simd_targets(int64_t targets);

}  // namespace sextant
