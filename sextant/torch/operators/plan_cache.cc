#include "sextant/torch/operators/plan_cache.h"

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
  plans_.push_front(std::make_shared<const TensorPlan>(frames, sweeps, data));
  if (plans_.size() > most_) plans_.pop_back();
  return plans_.front();
}

}  // namespace sextant
