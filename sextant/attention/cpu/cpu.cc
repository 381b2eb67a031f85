#include "sextant/attention/attend.h"

namespace sextant {

const Backend& cpu_backend() {
  static const Backend backend{.name = "cpu", .description = "float32, SIMD, tiled, threaded"};
  return backend;
}

}  // namespace sextant
