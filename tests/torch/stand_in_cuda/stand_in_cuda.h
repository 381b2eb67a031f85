// Stands in for a CUDA device in a libtorch without CUDA: its memory is the host's, operators of
// ATen run on the CPU, and sextant::cuda_backend() runs its kernels on fibers. Operands on two
// devices are an error, as they are with CUDA.
#pragma once

#include <cstdint>

namespace sextant::testing {

// The cudaStream_t of the current stream, and whether a graph records it.
void set_stand_in_stream(void* stream, bool captured);

// The number of copies between the host and the device so far.
int64_t copies_between_devices();

}  // namespace sextant::testing
