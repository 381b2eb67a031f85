#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <string>

#include "sextant/base/error.h"
#include "sextant/build_info.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/version.h"

namespace sextant::lab {

// The library is beside the program, in the build tree or as installed.
std::filesystem::path plugin_path() {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  constexpr std::array<const char*, 2> kPlaces{"../lib", SEXTANT_LIBRARY_FROM_PROGRAM};
  for (const char* place : kPlaces) {
    std::filesystem::path path = (program / place / "libsextant_lab.so").lexically_normal();
    if (std::filesystem::exists(path)) return path;
  }
  if (libtorch() == "none") {  // such as the program in the Python wheel
    fail(
        "laboratory: this command needs libtorch, but the program was built without it: in a clone "
        "of the sources ./run builds one that has it, and sextant.methods() lists methods in "
        "Python");
  }
  fail("laboratory: expected libsextant_lab.so in " +
       (program / kPlaces[0]).lexically_normal().string() +
       ", but it is not there: build the target sextant, as ./run does for this command");
}

void set_threads(int threads) {
  ::setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);  // a user's value is kept
  const std::string count = std::to_string(threads);
  ::setenv("OMP_NUM_THREADS", count.c_str(), /*overwrite=*/1);
  ::setenv("OPENBLAS_NUM_THREADS", count.c_str(), /*overwrite=*/1);
}

const Plugin& open_plugin(int threads) {
  static const Plugin& plugin = [threads]() -> const Plugin& {
    set_threads(threads);
    const std::filesystem::path path = plugin_path();
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) fail("laboratory: cannot open it: " + std::string(::dlerror()));
    void* symbol = ::dlsym(library, "sextant_lab_plugin");
    if (symbol == nullptr) fail("laboratory: " + path.string() + ": expected sextant_lab_plugin");
    const Plugin& found = *reinterpret_cast<decltype(&sextant_lab_plugin)>(symbol)();
    if (found.version != version())
      fail("laboratory: " + path.string() + ": expected version " + std::string(version()) +
           ", but got " + std::string(found.version));
    return found;
  }();
  return plugin;
}

}  // namespace sextant::lab
