// The SIMD targets that kernels are compiled for, here and in sextant/dense, and the choice among
// them. Include this header before any header of Highway.
//
// Targets are excluded if their vectors have no size at compile time (kernels keep vectors in
// arrays; such machines run the NEON or the portable code), or if they differ from a neighbouring
// target in no instruction that float32 kernels use.
//
// Only headers of Highway are used: its library, which has the choice of a target and the failure
// of an assertion, would have to be shipped with every engine.
#pragma once

#include <cstddef>

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
#undef HWY_IS_DEBUG_BUILD
#define HWY_IS_DEBUG_BUILD 0  // no assertions

namespace sextant {

// The place of the target in use (target.h) in a table of SEXTANT_EXPORT.
size_t simd_target_index();

}  // namespace sextant

// As HWY_EXPORT and HWY_DYNAMIC_DISPATCH: a table of one function for all targets, and its entry
// for the target in use.
#define SEXTANT_EXPORT(function)                                            \
  static decltype(&HWY_STATIC_DISPATCH(function)) const function##_of[] = { \
      nullptr, HWY_CHOOSE_TARGET_LIST(function), HWY_CHOOSE_FALLBACK(function)}
#define SEXTANT_DISPATCH(function) (*function##_of[sextant::simd_target_index()])
