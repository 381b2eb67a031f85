// Joins the kernels on fibers to the backends of a program, before its tests are listed.
#include "tests/attention/cuda/fiber_backend.h"

namespace sextant::cuda {
namespace {

[[maybe_unused]] const bool joined = [] {
  join(fiber_float32_backend());
  return true;
}();

}  // namespace
}  // namespace sextant::cuda
