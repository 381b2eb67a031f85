// The SIMD targets that kernels are compiled for, here and in sextant/dense. Include this header
// before any header of Highway.
//
// Targets are excluded if their vectors have no size at compile time (kernels keep vectors in
// arrays; such machines run the NEON or the portable code), or if they differ from a neighbouring
// target in no instruction that float32 kernels use.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
