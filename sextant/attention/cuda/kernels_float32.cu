#include "sextant/attention/cuda/instances.h"

namespace sextant::cuda {

Function find_float32(Kernel kernel, Instance instance) {
#ifdef __CUDACC__
  return find_among<float, Size<64, 32>, Size<128, 32>, Size<128, 16>, Size<256, 16>>(kernel,
                                                                                     instance);
#else
  return find_among<float, Size<64, 32>, Size<256, 16>>(kernel, instance);
#endif
}

}  // namespace sextant::cuda
