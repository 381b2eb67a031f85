// The device of a call: it is current while the call runs, and the call is queued on its stream.
// The CUDA parts of libtorch are found at run time, so one library serves builds of libtorch with
// and without CUDA.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Stream.h>

#include <memory>

#include "sextant/base/executor.h"

namespace sextant {

// Throws Error that names the argument unless x is on the CPU, a CUDA device or meta.
void check_device(const char* argument, const at::Tensor& x);

class DeviceCall {
 public:
  // The call of an operator whose results are on the device of `like`.
  explicit DeviceCall(const at::Tensor& like);

  c10::Device device() const { return device_; }
  // The cudaStream_t of this thread's current stream of the device; null on the CPU.
  void* stream() const { return stream_; }
  // Whether a CUDA graph records the stream. Copies from the host are then errors, and replays use
  // the memory that the call has used.
  bool is_captured() const;

 private:
  c10::Device device_;
  c10::OptionalDeviceGuard guard_;
  void* stream_ = nullptr;
};

// Keeps an object until the program ends, because a captured graph refers to its memory.
void keep_for_graphs(std::shared_ptr<const void> object);

// The cudaStream_t of a stream of libtorch. Throws Error if libtorch has no CUDA.
void* native_stream(const c10::Stream& stream);

// libtorch's thread pool as an Executor. Beside it a second pool would oversubscribe the cores.

// Has at::get_num_threads() workers, or one inside a parallel region.
const Executor& torch_executor();

}  // namespace sextant
