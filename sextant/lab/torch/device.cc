#include "sextant/lab/torch/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <array>
#include <filesystem>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"
#include "sextant/lab/plan/own_methods.h"

namespace sextant::lab {
namespace {

constexpr const char* kTorchCuda = "libtorch_cuda.so";

bool torch_has_cuda() { return c10::impl::hasDeviceGuardImpl(at::kCUDA); }

// The CUDA part of libtorch is beside its CPU part. Programs of C++ are linked to the CPU part, so
// that one program serves builds of libtorch with and without CUDA.
void open_torch_cuda(const std::string& name) {
  if (torch_has_cuda()) return;
  Dl_info info = {};
  ::dladdr(reinterpret_cast<const void*>(&at::globalContext), &info);
  const std::filesystem::path torch = info.dli_fname == nullptr ? "" : info.dli_fname;
  void* const library =
      ::dlopen((torch.parent_path() / kTorchCuda).c_str(), RTLD_NOW | RTLD_GLOBAL);
  const std::string why = library == nullptr ? ": " + std::string(::dlerror()) : "";
  if (!torch_has_cuda())
    fail("device: expected cpu, as this libtorch (" TORCH_VERSION ") has no CUDA, but got " + name +
         why);
}

void check_gpu(const std::string& name) {
  open_torch_cuda(name);
  if (const std::string why = why_no_cuda(); !why.empty())
    fail("device: expected cpu, as Sextant has no CUDA here, but got " + name + ": " + why);
  const int count = c10::impl::VirtualGuardImpl(at::kCUDA).deviceCount();
  if (count == 0)
    fail("device: expected cpu, as libtorch (" TORCH_VERSION ") finds no GPU, but got " + name);
  if (device_index(name) >= count)
    fail("device: expected a number below " + std::to_string(count) +
         ", the number of GPUs here, but got " + name);
}

}  // namespace

c10::Device device_named(const std::string& name) {
  check_device_name(name);
  if (name == kCpu) return at::kCPU;
  check_gpu(name);
  return {at::kCUDA, static_cast<c10::DeviceIndex>(device_index(name))};
}

void check_device_of(const Arm& arm, const std::string& name) {
  if (name != kCpu && is_own_method(arm.method))
    fail(arm.label + ": device: expected cpu for an encoding of one's own, but got " + name);
}

std::string gpu_name(c10::Device device) {
  // Functions of the CUDA driver; a CUdevice is an int.
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return "cuda";
  const auto device_get =
      reinterpret_cast<int (*)(int* device, int ordinal)>(::dlsym(driver, "cuDeviceGet"));
  const auto get_name = reinterpret_cast<int (*)(char* name, int size, int device)>(
      ::dlsym(driver, "cuDeviceGetName"));
  std::array<char, 256> name = {};
  int handle = 0;
  const bool found = device_get != nullptr && get_name != nullptr &&
                     device_get(&handle, device.index()) == 0 &&
                     get_name(name.data(), static_cast<int>(name.size()), handle) == 0;
  return found ? name.data() : "cuda";
}

}  // namespace sextant::lab
