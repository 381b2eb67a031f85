// libsextant_cuda.so with kernels that run on fibers.
#include "tests/attention/cuda/fiber_backend.h"

extern "C" const sextant::cuda::Driver* sextant_cuda_driver() {
  return &sextant::cuda::fiber_driver();
}
