// The kernels over tiles in float32.
#include "sextant/attention/cuda/kernels/instances.cuh"

namespace sextant::cuda {

Function find_float32(Kernel kernel, Instance instance) {
#ifdef SEXTANT_CUDA_FEW_INSTANCES
  if (const Function found = find_forward<float, Size<64, 32>, Size<256, 16>>(kernel, instance))
    return found;
  return find_backward<float, Size<64, 32>, Size<256, 16>>(kernel, instance);
#else
  if (const Function found =
          find_forward<float, Size<64, 32>, Size<128, 32>, Size<256, 16>>(kernel, instance))
    return found;
  return find_backward<float, Size<64, 32>, Size<128, 32>, Size<256, 16>>(kernel, instance);
#endif
}

}  // namespace sextant::cuda
