// Which SIMD targets kernels are compiled for, here and in sextant/dense. Include before any header
// of Highway.
//
// Left out are targets whose vectors have no size at compile time (kernels keep vectors in arrays;
// such machines run the NEON or the portable code) and those that differ from a neighbour in
// nothing that float32 kernels use.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
