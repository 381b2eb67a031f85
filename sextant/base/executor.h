// Runs a kernel's tasks. The core brings its own thread pool. Under libtorch the executor uses
// libtorch's pool: two pools would oversubscribe the cores.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "sextant/base/export.h"

namespace sextant {

class SEXTANT_API Executor {
 public:
  virtual ~Executor() = default;
  virtual int workers() const = 0;  // at least 1
  // Calls task(index, worker) once for each index in [0, tasks), with worker in [0, workers()), in
  // any order, and returns when all are done. Rethrows the first exception of a task.
  virtual void run(int64_t tasks,
                   const std::function<void(int64_t index, int worker)>& task) const = 0;
};

// Runs all tasks in the calling thread.
SEXTANT_API const Executor& serial_executor();

inline constexpr int kMostThreads = 4096;  // more than any machine runs at a time

// A pool with its own threads, which live as long as the pool. Throws Error unless `threads` is 1
// to kMostThreads.
SEXTANT_API std::unique_ptr<Executor> make_thread_pool(int threads);

}  // namespace sextant
