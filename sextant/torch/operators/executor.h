// libtorch's threads as an Executor: inside libtorch a pool of our own would fight for the cores.
#pragma once

#include "sextant/base/executor.h"

namespace sextant {

// As many workers as at::get_num_threads() says; one inside a parallel region.
const Executor& torch_executor();

}  // namespace sextant
