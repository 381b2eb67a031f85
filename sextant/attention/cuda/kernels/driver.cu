// libsextant_cuda.so: the table of functions over the CUDA runtime.
#include <cuda_runtime.h>

#include <string>

#include "sextant/attention/cuda/kernels/find.h"

namespace sextant::cuda {
namespace {

const char* message_of(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

const char* device_count(int32_t* count) {
  int found = 0;
  const cudaError_t error = cudaGetDeviceCount(&found);
  *count = error == cudaSuccess ? found : 0;
  return message_of(error);
}

const char* most_shared_bytes(int32_t* bytes) {
  int device = 0, found = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&found, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  *bytes = found;
  return message_of(error);
}

const char* allocate(size_t bytes, void* stream, void** memory) {
  return message_of(cudaMallocAsync(memory, bytes, static_cast<cudaStream_t>(stream)));
}
const char* release(void* memory, void* stream) {
  return message_of(cudaFreeAsync(memory, static_cast<cudaStream_t>(stream)));
}

// A copy from pageable memory returns once the memory may be changed.
const char* upload(void* to, const void* from, size_t bytes, void* stream) {
  return message_of(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream)));
}

bool has(Kernel kernel, Instance instance) { return find(kernel, instance) != nullptr; }

const char* launch(Kernel kernel, Instance instance, const Grid* grid, const Arguments* arguments,
                   void* stream) {
  const Function function = find(kernel, instance);
  if (!function) return "the library has no such kernel";
  const auto* const entry = reinterpret_cast<const void*>(function);
  cudaError_t error = cudaSuccess;
  if (grid->shared_bytes > 48 * 1024)
    error = cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 grid->shared_bytes);
  if (error != cudaSuccess) return message_of(error);
  void* parameters[] = {const_cast<Arguments*>(arguments)};
  return message_of(
      cudaLaunchKernel(entry,
                       dim3(static_cast<unsigned>(grid->x), static_cast<unsigned>(grid->y),
                            static_cast<unsigned>(grid->z)),
                       dim3(static_cast<unsigned>(grid->threads)), parameters,
                       static_cast<size_t>(grid->shared_bytes), static_cast<cudaStream_t>(stream)));
}

constexpr Driver kDriver = {
    kDriverVersion, device_count, most_shared_bytes, allocate, release, upload, has, launch};

}  // namespace
}  // namespace sextant::cuda

extern "C" const sextant::cuda::Driver* sextant_cuda_driver() { return &sextant::cuda::kDriver; }
