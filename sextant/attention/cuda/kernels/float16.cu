// The kernels over tiles of float16.
#include "sextant/attention/cuda/kernels/instances.cuh"

namespace sextant::cuda {

Function find_float16(Kernel kernel, Instance instance) {
  return find_narrow<Fp16>(kernel, instance);
}

}  // namespace sextant::cuda
