#include "sextant/attention/cuda/kernels/instances.cuh"

namespace sextant::cuda {

Function find_bfloat16(Kernel kernel, Instance instance) {
#ifdef SEXTANT_CUDA_FEW_INSTANCES
  if (const Function found = find_forward<Bf16, Size<64, 64>, Size<128, 32>>(kernel, instance))
    return found;
  return find_backward<Bf16, Size<64, 32>, Size<128, 32>>(kernel, instance);
#else
  if (const Function found = find_forward<Bf16, Size<64, 64>, Size<64, 32>, Size<128, 64>,
                                          Size<128, 32>, Size<256, 16>>(kernel, instance))
    return found;
  return find_backward<Bf16, Size<64, 32>, Size<128, 32>, Size<256, 16>>(kernel, instance);
#endif
}

}  // namespace sextant::cuda
