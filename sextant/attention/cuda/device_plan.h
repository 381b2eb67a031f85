// A plan in the memory of a device: tiles, visible rows, rotary positions, angles and row maps.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/cuda/memory.h"
#include "sextant/attention/cuda/plan.h"

namespace sextant::cuda {

// A side of a sweep in one pass.
struct DeviceSide {
  DeviceMemory channels;   // [columns] of Channel
  DeviceMemory positions;  // [batch or 1][axes][rows] of int64
  DeviceMemory pairs;      // of PairFrequency
  DeviceMemory angles;     // [batch or 1][rows][pairs][2] of float
  int32_t pair_count = 0;
  int64_t angles_of_batch = 0;
  Positions times;
  float gain = 1;
  bool grows = false;
};

struct DevicePass {
  PassPlan host;  // sizes and rows; its lists may be empty
  DeviceMemory frames, query_tiles, spans, key_tiles, parts;
  // For each sweep; null: that side is not rotated. Sweeps with equal sides share them.
  std::vector<std::shared_ptr<DeviceSide>> queries, keys;
};

// One device's memory of a plan, for any instance. It is filled when a call first needs a part, so
// one thread at a time may use it.
class DevicePlan final : public BackendPlan {
 public:
  DevicePlan(const Driver& driver, const Plan& plan, const PlanShape& shape, Passes passes)
      : driver_(driver), plan_(plan), shape_(shape), passes_(passes) {}

  std::mutex& lock() { return lock_; }
  const std::vector<DevicePass>& passes(int32_t tile, void* stream);
  const Visible* visible(void* stream);
  const int64_t* page_table(void* stream);
  const AxisRows* axes(void* stream);  // those of the plan
  // The row of each diagonal; null: row = diagonal.
  const int32_t* row_map(TableOf table, void* stream);
  // The diagonals of each row, for a table of so many rows.
  struct DiagonalLists {
    DeviceMemory row_begin, diagonal_at;
    int64_t rows = -1;
  };
  const DiagonalLists& diagonals(TableOf table, int64_t rows, void* stream);

 private:
  std::span<const int32_t> host_map(TableOf table) const;
  std::shared_ptr<DeviceSide> side_of(const SideRotation& side, int64_t frame, int64_t rows,
                                      void* stream) const;

  const Driver& driver_;
  const Plan plan_;  // a copy: the prepared plan may be moved
  const PlanShape shape_;
  const Passes passes_;
  std::mutex lock_;
  std::map<int32_t, std::vector<DevicePass>> passes_of_tile_;
  DeviceMemory visible_, page_table_, axes_;
  std::vector<DeviceMemory> of_axes_;
  std::array<DeviceMemory, kTables> maps_;
  std::array<DiagonalLists, kTables> diagonals_;
};

// The device's part of a prepared plan. Calls fill it; the plan itself does not change.
inline DevicePlan& device_plan(const PreparedPlan& plan) {
  return *const_cast<DevicePlan*>(static_cast<const DevicePlan*>(plan.of_backend()));
}

}  // namespace sextant::cuda
