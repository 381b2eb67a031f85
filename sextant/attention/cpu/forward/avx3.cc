// The forward kernels for AVX-512. own_file.h says why they have a file of their own.
#define SEXTANT_OWN_TARGET HWY_AVX3
#include "sextant/attention/cpu/own_file.h"

#if SEXTANT_HAS_OWN_TARGET
#include "sextant/attention/cpu/forward/kernels-inl.h"
#endif
