// Which SIMD targets the loops of this folder are compiled for: those whose vectors have a size at compile
// time, for accumulators are kept in arrays. Include before any header of Highway.
#pragma once

#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
