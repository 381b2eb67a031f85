// The plans of recent calls. Calls whose layouts share a cache share plans: all layers that see the
// same keys in the same way have one plan, and a later call with the same layout reuses it. A step
// of decoding renews the plan of an earlier one: without rotary positions of their own its operands
// are O(sequences), and so are finding the plan and renewing it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "sextant/torch/operators/tensor_plan.h"

namespace sextant {

class PlanCache {
 public:
  // Keeps the `most` plans that were used last. Each holds cos and sin of its rows: 16 bytes for
  // each pair and row of a side.
  explicit PlanCache(size_t most) : most_(most) {}

  // The plan of these operands. Throws Error as TensorPlan does. Thread-safe.
  std::shared_ptr<const TensorPlan> plan(const at::Tensor& frames,
                                         const std::vector<SweepOperand>& sweeps,
                                         const TensorData& data);

  // How many calls of plan() made or renewed one.
  int64_t planned() const { return planned_; }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::atomic<int64_t> planned_ = 0;
  std::list<std::shared_ptr<TensorPlan>> plans_;  // the most recently used one first
};

}  // namespace sextant
