#include "tests/attention/cuda/fiber_backend.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "sextant/attention/cuda/backend.h"
#include "sextant/attention/cuda/kernels/find.h"

namespace sextant::cuda {
namespace {

std::atomic<fibers::Order> order{fibers::Order::kAscending};
std::atomic<int64_t> in_use{0};

const char* device_count(int32_t* count) {
  *count = 1;
  return nullptr;
}
// As on an H100.
const char* most_shared_bytes(int32_t* bytes) {
  *bytes = 227 * 1024;
  return nullptr;
}
// NaN, so that memory that is read before it is written shows.
const char* allocate(size_t bytes, void*, void** memory) {
  *memory = std::malloc(bytes);
  if (!*memory) return "out of memory";
  std::memset(*memory, 0xff, bytes);
  ++in_use;
  return nullptr;
}
const char* allocate_lasting(size_t bytes, void** memory) {
  return allocate(bytes, nullptr, memory);
}
const char* release(void* memory, void*) {
  std::free(memory);
  --in_use;
  return nullptr;
}
const char* release_lasting(void* memory) { return release(memory, nullptr); }
const char* wait(void*) { return nullptr; }
const char* upload(void* to, const void* from, size_t bytes, void*) {
  std::memcpy(to, from, bytes);
  return nullptr;
}
const char* download(void* to, const void* from, size_t bytes, void*) {
  std::memcpy(to, from, bytes);
  return nullptr;
}
bool has(Kernel kernel, Instance instance) { return find(kernel, instance) != nullptr; }

const char* launch(Kernel kernel, Instance instance, const Grid* grid, const Arguments* arguments,
                   void*) {
  const Function function = find(kernel, instance);
  if (!function) return "there is no such kernel";
  fibers::run_grid(grid->x, grid->y, grid->z, grid->threads, grid->shared_bytes, order,
                   [&] { function(*arguments); });
  return nullptr;
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

Machine machine() { return {&kDriver}; }
Machine float32_machine() { return {&kDriver, Products::kFloat32}; }

}  // namespace

const Driver& fiber_driver() { return kDriver; }

const Backend& fiber_backend() {
  static const Backend backend =
      backend_over<machine>("cuda-fibers", "the kernels of cuda on the CPU", Device::kHost, false);
  return backend;
}

const Backend& fiber_float32_backend() {
  static const Backend backend = backend_over<float32_machine>(
      "cuda-float32-fibers", "the kernels of cuda in float32 on the CPU", Device::kHost, true);
  return backend;
}

void set_order(fibers::Order value) { order = value; }
int64_t blocks_in_use() { return in_use; }

}  // namespace sextant::cuda
