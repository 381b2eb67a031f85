#include "sextant/torch/operators/device_call.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/operators/shape_checks.h"

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

}  // namespace sextant
