// One decoding step of a whole transformer over a cache, by libtorch.
#pragma once

#include <functional>
#include <string>

#include "bench/decode_step/core_step.h"

namespace sextant::bench {

// As core_step(), for a decoder of these sizes whose method is `method`. Runs in libtorch's pool.
std::function<void()> model_step(const StepSizes& sizes, const std::string& method);

}  // namespace sextant::bench
