// libtorch's thread pool as an Executor. Beside it a second pool would oversubscribe the cores.
#pragma once

#include "sextant/base/executor.h"

namespace sextant {

// Has at::get_num_threads() workers, or one inside a parallel region.
const Executor& torch_executor();

}  // namespace sextant
