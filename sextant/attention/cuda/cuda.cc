// The backend for NVIDIA's GPUs. Its kernels are in libsextant_cuda.so, which is opened by the
// first call.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sextant/attention/cuda/backend.h"
#include "sextant/base/error.h"

namespace sextant {
namespace cuda {
namespace {

constexpr const char* kLibrary = "libsextant_cuda.so";

// The folder of the program or library that this code is in.
std::filesystem::path own_folder() {
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<const void*>(&cuda_backend), &info) == 0 || !info.dli_fname)
    return {};
  return std::filesystem::absolute(info.dli_fname).parent_path();
}

// Where the library is looked for: SEXTANT_CUDA_LIBRARY alone if it is set, else beside this
// library, in the lib folder beside its folder, and where the system looks.
std::vector<std::string> candidates() {
  if (const char* named = std::getenv("SEXTANT_CUDA_LIBRARY")) return {named};
  const std::filesystem::path folder = own_folder();
  return {(folder / kLibrary).string(), (folder / ".." / "lib" / kLibrary).string(), kLibrary};
}

struct Opened {
  const Driver* driver = nullptr;
  std::string why_not;
};

Opened open_library() {
  void* library = nullptr;
  std::string tried;
  for (const std::string& path : candidates()) {
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    tried += "\n  " + std::string(::dlerror());
  }
  if (!library)
    return {nullptr, "expected " + std::string(kLibrary) +
                         " beside Sextant's libraries or at SEXTANT_CUDA_LIBRARY, but could not "
                         "open it:" +
                         tried};
  void* const symbol = ::dlsym(library, "sextant_cuda_driver");
  if (!symbol) return {nullptr, std::string(kLibrary) + " has no symbol sextant_cuda_driver"};
  const Driver* const driver = reinterpret_cast<decltype(&sextant_cuda_driver)>(symbol)();
  if (driver->version != kDriverVersion)
    return {nullptr, std::string(kLibrary) + ": expected version " +
                         std::to_string(kDriverVersion) + ", but got " +
                         std::to_string(driver->version)};
  int32_t devices = 0;
  const char* const message = driver->device_count(&devices);
  if (message) return {nullptr, "no GPU can be used: " + std::string(message)};
  if (devices == 0) return {nullptr, "this machine has no GPU"};
  return {driver, ""};
}

const Opened& opened() {
  static const Opened result = open_library();
  return result;
}

Machine machine() { return {&library_driver(), Products::kOfOperands}; }
Machine float32_machine() { return {&library_driver(), Products::kFloat32}; }

}  // namespace

const Driver& library_driver() {
  if (!opened().driver) fail("cuda: " + opened().why_not);
  return *opened().driver;
}

}  // namespace cuda

std::string why_no_cuda() { return cuda::opened().why_not; }

const Backend& cuda_backend() {
  static const Backend backend = cuda::backend_over<cuda::machine>(
      "cuda", "NVIDIA GPUs from sm_80 on, with products in the type of the operands", Device::kCuda,
      false, why_no_cuda);
  return backend;
}

const Backend& cuda_float32_backend() {
  static const Backend backend = cuda::backend_over<cuda::float32_machine>(
      "cuda-float32", "NVIDIA GPUs from sm_80 on, with products in float32", Device::kCuda, true,
      why_no_cuda);
  return backend;
}

}  // namespace sextant
