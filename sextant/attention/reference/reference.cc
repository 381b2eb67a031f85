// The oracle: the score equation, term by term, in float64, without regard to speed. Every backend
// is tested against it; it is tested against finite differences and the official implementations.
// head.h holds the equation for one head, forward.cc and backward.cc the two passes.
#include "sextant/attention/attend.h"
#include "sextant/attention/reference/head.h"

namespace sextant {

const Backend& reference_backend() {
  static const Backend backend{
      .name = "reference",
      .description = "float64 inside, naive, one term after the other: the oracle",
      .attend_f32 = reference::attend_all<float>,
      .attend_backward_f32 = reference::attend_backward_all<float>,
      .attend_f64 = reference::attend_all<double>,
      .attend_backward_f64 = reference::attend_backward_all<double>,
  };
  return backend;
}

}  // namespace sextant
