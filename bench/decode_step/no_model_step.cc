// The stand-in of model_step.cc in a build without libtorch.
#include "bench/decode_step/model_step.h"
#include "sextant/base/error.h"

namespace sextant::bench {

std::function<void()> model_step(const StepSizes&, const std::string& method) {
  fail("bench: methods: expected none, as this build has no libtorch, but got " + method);
}

}  // namespace sextant::bench
