// The plan of a call with tensors as operands.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/torch/operators/device_call.h"
#include "sextant/torch/operators/tensor_data.h"

namespace sextant {

// Throws Error that names the field if frames or sweeps have other types or shapes than operands.h
// lists, or if an index tensor is not on the CPU. check_data() must have accepted `data`.
void check_layout(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
                  const TensorData& data);

// The part of check_layout() that needs no tensors: offsets and rotations of frames fit the pairs.
void check_pairs(const SweepOperand& sweep, int64_t frames);

// Frames, sweeps and index tensors as a Plan of the core. It owns copies of all arrays that the
// plan points to, so later changes of the tensors have no effect on it. Thread-safe.
class TensorPlan {
 public:
  // Throws Error as check_layout() does.
  TensorPlan(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
             const TensorData& data);
  TensorPlan(const TensorPlan&) = delete;
  TensorPlan& operator=(const TensorPlan&) = delete;

  // Whether the plan of these operands, which check_layout() accepted, would have the same values.
  bool serves(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
              const TensorData& data) const;

  // The plan prepared for a backend, the shapes of `operands`, at least `passes`, and the device of
  // the call, for calls on any of its streams. The first such call prepares it; later calls get the
  // same one. Throws Error if a CUDA graph is being captured and there is no such plan yet.
  template <class T>
  std::shared_ptr<const PreparedPlan> prepared(const Operands<T>& operands, const Backend& backend,
                                               Passes passes, const DeviceCall& call) const;

 private:
  struct OwnSweep {
    std::vector<KeyRange> key_ranges;
    std::vector<Rotation> rotations;  // one, or one for each frame; empty: no rotation
    std::vector<int64_t> query_rotary_positions, key_rotary_positions;
    SweepOperand given;          // without its tensors
    std::vector<int64_t> sizes;  // of its tensors
  };

  struct PlanOnDevice {
    std::shared_ptr<const PreparedPlan> plan;
    c10::Device device;
  };

  void add_sweep(const SweepOperand& given);
  SideRotation side(const OwnSweep& sweep, const at::Tensor& rotary_positions,
                    const std::vector<int64_t>& values, const std::vector<Turns>& offset) const;

  Plan plan_;
  std::vector<OwnSweep> sweeps_;
  std::deque<std::vector<int32_t>> maps_;
  std::vector<int64_t> pages_;
  std::vector<int64_t> page_sizes_;
  mutable std::mutex mutex_;
  mutable std::vector<PlanOnDevice> prepared_;
};

}  // namespace sextant
