// Sharing out work that may be too small to share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "sextant/base/executor.h"

namespace sextant::cpu {

// Calls f(index, worker) once for each index in [0, count), which take about `seconds` together on
// one core: as few tasks as are worth waking a thread for. Never changes what is computed, only who
// computes it.
template <class F>
void share_out(const Executor& executor, int64_t count, double seconds, F&& f) {
  constexpr double kSecondsOfTask = 1e-4;
  const auto worth = static_cast<int64_t>(std::min(seconds / kSecondsOfTask, 1e9));
  const int64_t tasks = std::clamp<int64_t>(worth, 1, std::max<int64_t>(count, 1));
  const auto run = [&](int64_t task, int worker) {
    for (int64_t index = count * task / tasks; index < count * (task + 1) / tasks; ++index)
      f(index, worker);
  };
  if (tasks == 1)
    run(0, 0);
  else
    executor.run(tasks, run);
}

}  // namespace sextant::cpu
