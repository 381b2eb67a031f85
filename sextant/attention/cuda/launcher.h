// The common part of both passes of a call: the arguments that all kernels have, the instance,
// rotated rows, and launches.
#pragma once

#include <deque>

#include "sextant/attention/cuda/call.h"
#include "sextant/attention/cuda/device_plan.h"
#include "sextant/attention/cuda/tiles.h"

namespace sextant::cuda {

enum class PassOf { kForward, kBackward };

class Launcher {
 public:
  // Has the lock of the plan's DevicePlan until it ends.
  Launcher(const Machine& machine, const Operands<float>& operands, const PreparedPlan& plan,
           PassOf pass, void* stream);

  // Memory that lasts until the launcher ends, in the order of the stream.
  template <class T>
  T* memory(int64_t count) {
    return memory_.emplace_back(driver_, stream_, count * static_cast<int64_t>(sizeof(T)))
        .template as<T>();
  }
  // Such memory with zeros, [batch, heads, rows, columns] in float32.
  Rows zeros(int64_t batch, int64_t heads, int64_t rows, int32_t columns);

  // Launches a kernel over rows: `elements` for each head and batch entry.
  void launch_rows(Kernel kernel, const Arguments& arguments, int64_t elements, int64_t heads,
                   int64_t batch);
  // Launches a kernel over tiles.
  void launch_tiles(Kernel kernel, Arguments arguments, int64_t x, int64_t heads, int64_t z = 1);
  // Sets rows [first, first + rows) of all heads and batch entries.
  void fill(const Rows& to, int64_t batch, int64_t heads, int64_t first, int64_t rows, float value);

  const std::vector<DevicePass>& passes() { return own_.passes(instance_.tile, stream_); }
  // Sets the operands of a pass, rotating its rows.
  void enter(const DevicePass& pass);
  // Adds rows of sums to `to`, rotated back by a side.
  void add_sums(const Rows& sums, const DeviceSide* side, const Rows& to, int64_t heads,
                int64_t first, int64_t rows);
  // Copies all rows of one type to another.
  void copy(const Rows& from, const Rows& to, int64_t heads, int64_t rows);

  Arguments& arguments() { return a_; }
  DevicePlan& own() { return own_; }
  int32_t tile() const { return instance_.tile; }
  void* stream() const { return stream_; }
  bool rotates_queries() const { return rotates_queries_; }
  bool rotates_keys() const { return rotates_keys_; }

 private:
  void set_tables();
  void set_axes(const Plan& plan);
  void set_dropout();
  void choose_instance(const Machine& machine, const Plan& plan, PassOf pass);
  void set_origins();
  static void set_angles(const DeviceSide* side, Arguments& a);
  // The tiles that the block of a kernel holds; what: the Parts that it computes.
  Holds holds(Kernel kernel, int32_t what) const;
  // Rows [first, first + rows) of an operand, rotated and gathered from pages, in memory of the
  // pass; the operand itself if there is nothing to do.
  Rows rotated(const Rows& from, const DeviceSide* side, int64_t heads, int64_t rows_of_head,
               int64_t first, int64_t rows, const PageTable& pages);

  const Driver& driver_;
  const Operands<float>& operands_;
  const PlanShape& shape_;
  DevicePlan& own_;
  const std::lock_guard<std::mutex> guard_;
  void* stream_;
  Arguments a_;
  Instance instance_;
  bool rotates_queries_ = false, rotates_keys_ = false, in_pages_ = false;
  PageTable key_pages_, value_pages_;
  std::deque<DeviceMemory> memory_, pass_memory_;
};

// A view as kernels read it; null stays null.
template <class AView>
Rows rows_of(const AView& view);

}  // namespace sextant::cuda
