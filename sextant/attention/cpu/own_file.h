// Targets whose kernels are compiled in files of their own, beside the file with the dispatch: the
// files build in parallel, and the slowest takes half of the time of one file for all.
//
//   forward.cc    declares the kernels for each target, defines those of targets without a file of
//                 their own, and dispatches
//   avx2.cc ...   define SEXTANT_OWN_TARGET, include this header, and define the kernels of that
//                 target, if Highway generates it (SEXTANT_HAS_OWN_TARGET)
//
// Highway compiles a source again for each target (foreach_target.h); here a source is compiled
// once, with HWY_TARGET set in the same way.
#pragma once

#include "sextant/base/simd/targets.h"
//
#include "hwy/detect_targets.h"

#define SEXTANT_TARGETS_WITH_FILES (HWY_AVX2 | HWY_AVX3)

#ifdef SEXTANT_OWN_TARGET
#if HWY_TARGETS & SEXTANT_OWN_TARGET
#define SEXTANT_HAS_OWN_TARGET 1
#undef HWY_TARGET
#define HWY_TARGET SEXTANT_OWN_TARGET
#else
#define SEXTANT_HAS_OWN_TARGET 0
#endif
#endif
