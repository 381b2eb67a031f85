#include "sextant/torch/operators/device_call.h"

#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/operators/tensor_data.h"

namespace sextant {
namespace {

// A function of libtorch's CUDA library, which the process has loaded if there are CUDA tensors, or
// of the CUDA runtime that the library is linked to. Null: there is no such function.
void* cuda_function(const char* symbol) {
  static void* const library = ::dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  return library ? ::dlsym(library, symbol) : nullptr;
}

// Versions of libtorch from 2.9 on have the handle of any device's stream.
template <class Stream>
void* handle_of(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    // c10::cuda::CUDAStream consists of a c10::Stream.
    static const auto handle = reinterpret_cast<void* (*)(const Stream*)>(
        cuda_function("_ZNK3c104cuda10CUDAStream6streamEv"));
    if (!handle)
      fail(
          "cuda: expected libc10_cuda.so with c10::cuda::CUDAStream::stream(), but this libtorch "
          "has none");
    return handle(&stream);
  }
}

class TorchExecutor final : public Executor {
 public:
  int workers() const override {
    return at::in_parallel_region() ? 1 : std::max(1, at::get_num_threads());
  }

  // at::parallel_for divides the range equally, but tasks differ in cost (the last rows of a causal
  // matrix see the most keys). Therefore each worker takes the next task when it has finished one.
  void run(int64_t tasks, const std::function<void(int64_t, int)>& task) const override {
    std::atomic<int64_t> next = 0;
    const auto work = [&](int64_t first, int64_t last) {
      for (int64_t worker = first; worker < last; ++worker)
        for (int64_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < tasks;)
          task(index, static_cast<int>(worker));
    };
    at::parallel_for(0, std::min<int64_t>(workers(), tasks), /*grain_size=*/1, work);
  }
};

}  // namespace

void check_device(const char* argument, const at::Tensor& x) {
  if (!x.is_cpu() && !x.is_cuda() && !x.is_meta())
    refuse(argument, "a tensor on cpu, cuda or meta", x.device().str());
}

void* native_stream(const c10::Stream& stream) { return handle_of(stream); }

DeviceCall::DeviceCall(const at::Tensor& like) : device_(like.device()) {
  if (!like.is_cuda()) return;
  guard_.reset_device(device_);
  stream_ = native_stream(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

bool DeviceCall::is_captured() const {
  if (device_.is_cpu() || device_.is_meta()) return false;
  using IsCapturing = int (*)(void* stream, int* status);
  static const auto is_capturing =
      reinterpret_cast<IsCapturing>(cuda_function("cudaStreamIsCapturing"));
  int status = 0;  // cudaStreamCaptureStatusNone
  return is_capturing && is_capturing(stream_, &status) == 0 && status != 0;
}

void keep_for_graphs(std::shared_ptr<const void> object) {
  static std::mutex mutex;
  static auto* const kept = new std::set<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  kept->insert(std::move(object));
}

const Executor& torch_executor() {
  static const TorchExecutor executor;
  return executor;
}

}  // namespace sextant
