// Parallel loops whose work may be too small for threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "sextant/base/executor.h"

namespace sextant::cpu {

// Calls f(index, worker) once for each index in [0, count). `seconds` is an estimate of the time of
// all calls on one core; there are no more tasks than are worth waking a thread for. The split
// changes which thread computes a value, and never the value.
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
    executor.run(tasks, std::ref(run));  // which std::function holds without memory of its own
}

}  // namespace sextant::cpu
