// Opens a libsextant_cuda.so and asks for its devices, as the core does: on a machine without a GPU
// that is a message, and no crash.
//
//   open_library LIBRARY
#include <dlfcn.h>

#include <cstdio>
#include <initializer_list>

#include "sextant/attention/cuda/driver.h"

int main(int count, char** words) {
  using sextant::cuda::kDriverVersion;
  void* const library = count == 2 ? dlopen(words[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) {
    std::printf("expected a library, but got %s\n", count == 2 ? dlerror() : "no argument");
    return 1;
  }
  const auto driver_of =
      reinterpret_cast<decltype(&sextant_cuda_driver)>(dlsym(library, "sextant_cuda_driver"));
  if (!driver_of) {
    std::printf("expected the symbol sextant_cuda_driver, but the library has none\n");
    return 1;
  }
  const sextant::cuda::Driver* const driver = driver_of();
  if (driver->version != kDriverVersion) {
    std::printf("expected version %d, but got %d\n", kDriverVersion, driver->version);
    return 1;
  }
  for (const auto kernel : {sextant::cuda::Kernel::kFill, sextant::cuda::Kernel::kFoldTable})
    if (!driver->has(kernel, {})) {
      std::printf("expected kernel %d, but the library has none\n", static_cast<int>(kernel));
      return 1;
    }
  int devices = -1;
  const char* const message = driver->device_count(&devices);
  std::printf("version %d, %d devices%s%s\n", driver->version, devices, message ? ": " : "",
              message ? message : "");
  return devices < 0 ? 1 : 0;
}
