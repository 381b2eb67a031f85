#include "sextant/torch/operators/executor.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

namespace sextant {
namespace {

class TorchExecutor final : public Executor {
 public:
  int workers() const override {
    return at::in_parallel_region() ? 1 : std::max(1, at::get_num_threads());
  }

  // at::parallel_for divides the range equally, but tasks differ in cost (the last rows of a causal
  // matrix see the most keys). Therefore each worker takes the next task when it has finished one.
  void run(int64_t tasks, const std::function<void(int64_t, int)>& task) const override {
    std::atomic<int64_t> next = 0;
    const auto work = [&](int64_t first, int64_t last) {
      for (int64_t worker = first; worker < last; ++worker)
        for (int64_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < tasks;)
          task(index, static_cast<int>(worker));
    };
    at::parallel_for(0, std::min<int64_t>(workers(), tasks), /*grain_size=*/1, work);
  }
};

}  // namespace

const Executor& torch_executor() {
  static const TorchExecutor executor;
  return executor;
}

}  // namespace sextant
