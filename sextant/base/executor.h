// Who runs the tasks of a kernel. The core brings its own threads; inside libtorch its pool is
// used, for two pools would fight for the cores.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace sextant {

class Executor {
 public:
  virtual ~Executor() = default;
  virtual int workers() const = 0;  // at least 1
  // Calls task(index, worker) once for each index in [0, tasks), worker in [0, workers()), in any
  // order; returns when all are done. The first exception of a task is thrown again here.
  virtual void run(int64_t tasks,
                   const std::function<void(int64_t index, int worker)>& task) const = 0;
};

// Runs everything in the calling thread.
const Executor& serial_executor();

// Threads of its own, kept for its lifetime. threads >= 1; throws Error otherwise.
std::unique_ptr<Executor> make_thread_pool(int threads);

}  // namespace sextant
