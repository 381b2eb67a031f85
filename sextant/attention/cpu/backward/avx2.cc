#define SEXTANT_OWN_TARGET HWY_AVX2
#include "sextant/attention/cpu/own_file.h"

#if SEXTANT_HAS_OWN_TARGET
#include "sextant/attention/cpu/backward/kernels-inl.h"
#endif
