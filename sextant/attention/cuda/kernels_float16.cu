#include "sextant/attention/cuda/instances.h"

namespace sextant::cuda {

Function find_float16(Kernel kernel, Instance instance) {
#ifdef __CUDACC__
  return find_among<Fp16, Size<64, 64>, Size<64, 32>, Size<128, 64>, Size<128, 32>, Size<256, 32>,
                    Size<256, 16>>(kernel, instance);
#else
  return find_among<Fp16, Size<64, 32>>(kernel, instance);
#endif
}

}  // namespace sextant::cuda
