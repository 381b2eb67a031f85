// The plan of a call with tensors as operands.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
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
// plan points to, so later changes of the tensors have no effect on it. Thread-safe but for
// renew().
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

  // Becomes the plan of these operands, which check_layout() accepted, in its own memory, if they
  // have its rotations and a frame of as many queries for each of its frames, as the next step of
  // decoding has. Returns whether they have; if not, it is unchanged. Nobody may use it meanwhile.
  bool renew(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
             const TensorData& data);

  // The plan prepared for a backend, the shapes of `operands`, at least `passes`, and the device of
  // the call, for calls on any of its streams. The first such call prepares it; later calls get the
  // same one. Throws Error if a CUDA graph is being captured and there is no such plan yet.
  template <class T>
  std::shared_ptr<const PreparedPlan> prepared(const Operands<T>& operands, const Backend& backend,
                                               Passes passes, const DeviceCall& call) const;

 private:
  // The sizes and elements of an index tensor.
  struct OwnTensor {
    bool defined = false;
    std::vector<int64_t> sizes;
    std::vector<char> bytes;

    OwnTensor() = default;
    explicit OwnTensor(const at::Tensor& x);
    OwnTensor& operator=(const at::Tensor& x);
    bool equals(const at::Tensor& x) const;
    template <class Value>
    std::span<const Value> values() const {
      return {reinterpret_cast<const Value*>(bytes.data()), bytes.size() / sizeof(Value)};
    }
  };
  struct OwnSweep {
    SweepOperand given;  // without its tensors; the same in all epochs
    OwnTensor key_ranges, query_positions, key_positions;
  };
  struct Prepared {
    std::shared_ptr<PreparedPlan> plan = {};
    c10::Device device;
    int64_t epoch;  // in which it was prepared
  };

  void set(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
           const TensorData& data);
  bool has_rotations(const std::vector<SweepOperand>& sweeps) const;
  static SideRotation side(const OwnSweep& sweep, const OwnTensor& positions,
                           const std::vector<Turns>& offset);

  Plan plan_;
  std::vector<OwnSweep> sweeps_;
  // The maps of all tables, in the order of RowMaps.
  std::array<OwnTensor, sizeof(RowMaps) / sizeof(std::span<const int32_t>)> maps_;
  OwnTensor pages_;
  std::vector<OwnTensor> axes_;
  mutable std::mutex mutex_;
  mutable std::vector<Prepared> prepared_;
  int64_t epoch_ = 0;  // renew() begins another
};

// The plans of recent calls. Calls whose layouts share a cache share plans: all layers that see the
// same keys in the same way have one plan, and a later call with the same layout reuses it. A step
// of decoding renews the plan of an earlier one: without rotary positions of their own its operands
// are O(sequences), and so are finding the plan and renewing it.
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
