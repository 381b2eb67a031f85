#include "tests/torch/stand_in_cuda/stand_in_cuda.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/torch/stand_in_cuda/stream.h"

namespace sextant::testing {
namespace {

using torch::jit::Stack;
using Tensors = std::vector<at::Tensor>;

std::atomic<int64_t> copies{0};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return at::kCUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  c10::Device getDevice() const override { return {at::kCUDA, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::DEFAULT, device);
  }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);

// The engine of autograd asks these for the streams of its caller.
struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(int64_t) const override { return true; }
  void initCUDA() const override {}
};
using at::CUDAHooksRegistry;
using at::RegistererCUDAHooksRegistry;
REGISTER_CUDA_HOOKS(CUDAHooks);

// A tensor on another device with the memory of x.
at::Tensor alias(const at::Tensor& x, c10::Device device) {
  auto* const owner = new c10::Storage(x.storage());
  c10::DataPtr data(
      x.storage().data_ptr().get(), owner,
      [](void* storage) { delete static_cast<c10::Storage*>(storage); }, device);
  c10::Storage storage(c10::Storage::use_byte_size_t(), x.storage().nbytes(), std::move(data));
  const auto key = device.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                               c10::DispatchKeySet(key), x.dtype());
  result.unsafeGetTensorImpl()->set_storage_offset(x.storage_offset());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(x.sizes(), x.strides());
  return result;
}

// A call of an operator with the memory of its tensors.
class HostCall {
 public:
  explicit HostCall(const c10::OperatorHandle& op) : op_(op) {}

  void run(Stack& stack) {
    Stack arguments = torch::jit::pop(stack, op_.schema().arguments().size());
    for (at::IValue& value : arguments) to_host(value);
    check_devices();
    {
      const at::AutoDispatchBelowADInplaceOrView guard;
      op_.callBoxed(arguments);
    }
    for (at::IValue& value : arguments) stack.push_back(from_host(std::move(value)));
  }

 private:
  at::Tensor host(const at::Tensor& x) {
    if (!x.defined()) return x;
    (x.is_cuda() ? any_cuda_ : any_cpu_) |= x.dim() > 0;
    given_.push_back(x);
    on_host_.push_back(!x.is_cuda()     ? x
                       : x.numel() == 0 ? at::empty(x.sizes(), x.options().device(at::kCPU))
                                        : alias(x, at::kCPU));
    return on_host_.back();
  }
  void to_host(at::IValue& value) {
    if (value.isTensor()) {
      value = host(value.toTensor());
    } else if (value.isTensorList()) {
      Tensors all;
      for (const at::Tensor& x : value.toTensorVector()) all.push_back(host(x));
      value = all;
    } else if (value.isOptionalTensorList()) {
      c10::List<c10::optional<at::Tensor>> all;
      for (const c10::optional<at::Tensor>& x : value.toOptionalTensorVector())
        all.push_back(x ? c10::optional<at::Tensor>(host(*x)) : x);
      value = all;
    } else if (value.isDevice() && value.toDevice().is_cuda()) {
      makes_cuda_ = true;
      value = c10::Device(at::kCPU);
    }
  }
  void check_devices() const {
    const std::string name = op_.schema().name();
    const bool may_mix = name == "aten::copy_" || name == "aten::index";
    if (any_cuda_ && any_cpu_ && !may_mix)
      throw std::runtime_error(name + ": operands on two devices");
    if (any_cuda_ && any_cpu_ && name == "aten::copy_") ++copies;
    if (name == "aten::_local_scalar_dense") ++copies;
  }
  at::Tensor device(const at::Tensor& x) const {
    for (size_t n = 0; n < given_.size(); ++n)
      if (x.is_same(on_host_[n])) return resized(given_[n], x);
    const bool on_cuda = makes_cuda_ || std::ranges::any_of(given_, [](const at::Tensor& one) {
                           return one.is_cuda();
                         });
    return x.defined() && on_cuda ? alias(x, {at::kCUDA, 0}) : x;
  }
  // An empty result may have got memory.
  static const at::Tensor& resized(const at::Tensor& x, const at::Tensor& on_host) {
    if (x.numel() > 0 || on_host.numel() == 0) return x;
    x.unsafeGetTensorImpl()->set_storage_keep_dtype(alias(on_host, x.device()).storage());
    x.unsafeGetTensorImpl()->set_sizes_and_strides(on_host.sizes(), on_host.strides());
    return x;
  }
  at::IValue from_host(at::IValue value) const {
    if (value.isTensor()) return device(value.toTensor());
    if (!value.isTensorList()) return value;
    Tensors all;
    for (const at::Tensor& x : value.toTensorVector()) all.push_back(device(x));
    return all;
  }

  const c10::OperatorHandle& op_;
  Tensors given_, on_host_;
  bool any_cuda_ = false, any_cpu_ = false, makes_cuda_ = false;
};

void run_on_host(const c10::OperatorHandle& op, Stack* stack) { HostCall(op).run(*stack); }

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}
// This operator has a kernel for all devices, which calls CUDA.
TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("copy_", torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

const int use_fibers = ::setenv("SEXTANT_CUDA_LIBRARY", SEXTANT_FIBER_LIBRARY, /*overwrite=*/1);

}  // namespace

void set_stand_in_stream(void* stream, bool captured) { stand_in_stream() = {stream, captured}; }

int64_t copies_between_devices() { return copies; }

}  // namespace sextant::testing
