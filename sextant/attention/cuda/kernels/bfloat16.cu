// The kernels over tiles of bfloat16.
#include "sextant/attention/cuda/kernels/instances.cuh"

namespace sextant::cuda {

Function find_bfloat16(Kernel kernel, Instance instance) {
  return find_narrow<Bf16>(kernel, instance);
}

}  // namespace sextant::cuda
