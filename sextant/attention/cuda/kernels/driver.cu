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

const char* allocate_lasting(size_t bytes, void** memory) {
  return message_of(cudaMalloc(memory, bytes));
}
const char* release_lasting(void* memory) { return message_of(cudaFree(memory)); }
const char* allocate(size_t bytes, void* stream, void** memory) {
  return message_of(cudaMallocAsync(memory, bytes, static_cast<cudaStream_t>(stream)));
}
const char* release(void* memory, void* stream) {
  return message_of(cudaFreeAsync(memory, static_cast<cudaStream_t>(stream)));
}

const char* wait(void* stream) {
  return message_of(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}
const char* upload(void* to, const void* from, size_t bytes, void* stream) {
  const cudaError_t error =
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream));
  return error == cudaSuccess ? wait(stream) : message_of(error);
}

const char* download(void* to, const void* from, size_t bytes, void* stream) {
  const cudaError_t error =
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream));
  return error == cudaSuccess ? wait(stream) : message_of(error);
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

constexpr Driver kDriver = {kDriverVersion,
                            device_count,
                            most_shared_bytes,
                            allocate_lasting,
                            release_lasting,
                            allocate,
                            release,
                            upload,
                            download,
                            wait,
                            has,
                            launch};

}  // namespace
}  // namespace sextant::cuda

extern "C" const sextant::cuda::Driver* sextant_cuda_driver() { return &sextant::cuda::kDriver; }
