#include "sextant/torch/operators/plan_cache.h"

#include <iterator>

namespace sextant {

std::shared_ptr<const TensorPlan> PlanCache::plan(const at::Tensor& frames,
                                                  const std::vector<SweepOperand>& sweeps,
                                                  const TensorData& data) {
  check_layout(frames, sweeps, data);
  const std::lock_guard lock(mutex_);
  for (auto at = plans_.begin(); at != plans_.end(); ++at)
    if ((*at)->serves(frames, sweeps, data)) {
      plans_.splice(plans_.begin(), plans_, at);
      return plans_.front();
    }
  ++planned_;
  if (plans_.size() == most_) {
    // Calls get plans under the lock, so one that only the cache has stays unused.
    const bool unused = plans_.back().use_count() == 1;
    std::atomic_thread_fence(std::memory_order_acquire);  // after the last use
    if (unused && plans_.back()->renew(frames, sweeps, data)) {
      plans_.splice(plans_.begin(), plans_, std::prev(plans_.end()));
      return plans_.front();
    }
    plans_.pop_back();
  }
  plans_.push_front(std::make_shared<TensorPlan>(frames, sweeps, data));
  return plans_.front();
}

}  // namespace sextant
