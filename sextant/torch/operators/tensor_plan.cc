// A plan owns copies of all index tensors and points into them. renew() fills the same memory with
// the next step, and begins an epoch: prepared plans of earlier ones are renewed, not made anew.
#include "sextant/torch/operators/tensor_plan.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/torch/operators/device_call.h"
#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/operators/views.h"

namespace sextant {
namespace {

// Whether all rows of a side have position 0, phase 0 and gain 1, as keys beyond ReRoPE's window
// have. Without a rotation such rows need no panels of their own.
bool rotates_nothing(const Rotation& rotation, std::span<const int64_t> rotary_positions,
                     const std::vector<Turns>& offset) {
  return rotation.gain == 1 &&
         std::ranges::all_of(offset, [](const Turns& phase) { return phase == Turns{}; }) &&
         std::ranges::all_of(rotation.pairs, [](const auto& pair) { return pair.growth == 0; }) &&
         std::ranges::all_of(rotary_positions, [](int64_t position) { return position == 0; });
}

void check_axes(const char* name, const Rotation& rotation, const at::Tensor& rotary_positions) {
  if (!rotary_positions.defined()) return;
  for (const Rotation::Pair& pair : rotation.pairs)
    if (pair.axis >= rotary_positions.size(1))
      fail("attend: " + std::string(name) + ": expected at least " + std::to_string(pair.axis + 1) +
           " axes, as pairs ask for, but got " + std::to_string(rotary_positions.size(1)));
}

void check_offset(const std::vector<Turns>& offset, const Rotation& rotation) {
  if (!offset.empty() && offset.size() != rotation.pairs.size())
    fail("attend: offset: expected one for each of " + std::to_string(rotation.pairs.size()) +
         " pairs, but got " + std::to_string(offset.size()));
}

void check_rotation(const SweepOperand& sweep, const TensorData& data, int64_t frames) {
  const Size batch = {Size::kOneOr, data.q.size(0)};
  check_tensor("query_rotary_positions", sweep.query_rotary_positions, at::kLong,
               {batch, {}, {Size::kExactly, data.q.size(2)}});
  check_tensor("key_rotary_positions", sweep.key_rotary_positions, at::kLong,
               {batch, {}, {Size::kExactly, key_rows(data)}});
  if (sweep.rotation.pairs.empty()) return;
  check_axes("query_rotary_positions", sweep.rotation, sweep.query_rotary_positions);
  check_axes("key_rotary_positions", sweep.rotation, sweep.key_rotary_positions);
  check_pairs(sweep, frames);
}

// The number of diagonals: the size of a row map, or without any map the number of rows.
int64_t diagonals_of(const TensorData& data) {
  int64_t mapped = -1, rows = data.query_bias.defined() ? data.query_bias.size(3) : -1;
  each_table([&](auto operand) {
    const TableOperand& table = operand.of(data);
    if (!table.rows.defined()) return;
    if (table.row_at.defined())
      mapped = table.row_at.numel();
    else
      rows = rows < 0 ? table.rows.size(1) : std::min(rows, table.rows.size(1));
  });
  return std::max<int64_t>(mapped < 0 ? rows : mapped, 0);
}

// Calls f(the map of a table in `data`, its entry in `maps`).
template <class Maps, class F>
void each_map(const TensorData& data, Maps& maps, F&& f) {
  each_table([&](auto operand) { f(operand.of(data).row_at, operand.of(maps)); });
}

}  // namespace

void check_pairs(const SweepOperand& sweep, int64_t frames) {
  check_offset(sweep.query_offset, sweep.rotation);
  check_offset(sweep.key_offset, sweep.rotation);
  if (sweep.of_frames.empty()) return;
  if (static_cast<int64_t>(sweep.of_frames.size()) != frames)
    fail("attend: of_frames: expected one rotation for each of " + std::to_string(frames) +
         " frames, but got " + std::to_string(sweep.of_frames.size()));
  for (const Rotation& rotation : sweep.of_frames)
    if (rotation.pairs.size() != sweep.rotation.pairs.size())
      fail("attend: of_frames: expected the " + std::to_string(sweep.rotation.pairs.size()) +
           " pairs of the rotation, but got " + std::to_string(rotation.pairs.size()));
}

void check_layout(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
                  const TensorData& data) {
  if (!frames.defined()) refuse("frames", "Long [*, 7]", "none");
  check_tensor("frames", frames, at::kLong, {{}, 7});
  check_on_cpu("frames", frames);
  check_on_cpu("pages", data.pages);
  for (const SweepOperand& sweep : sweeps) {
    if (!sweep.key_ranges.defined()) refuse("key_ranges", "a tensor", "none");
    check_tensor("key_ranges", sweep.key_ranges, at::kLong,
                 {{Size::kOneOr, data.q.size(0)}, {Size::kExactly, data.q.size(2)}, 2});
    check_on_cpu("key_ranges", sweep.key_ranges);
    check_on_cpu("query_rotary_positions", sweep.query_rotary_positions);
    check_on_cpu("key_rotary_positions", sweep.key_rotary_positions);
    check_rotation(sweep, data, frames.size(0));
  }
}

TensorPlan::OwnTensor::OwnTensor(const at::Tensor& x) { *this = x; }

TensorPlan::OwnTensor& TensorPlan::OwnTensor::operator=(const at::Tensor& x) {
  defined = x.defined();
  sizes = defined ? x.sizes().vec() : std::vector<int64_t>();
  const at::Tensor whole = defined ? x.contiguous() : x;
  const char* const data = defined ? static_cast<const char*>(whole.data_ptr()) : nullptr;
  bytes.assign(data, data + (defined ? whole.nbytes() : 0));
  return *this;
}

bool TensorPlan::OwnTensor::equals(const at::Tensor& x) const {
  if (!x.defined() || !defined) return x.defined() == defined;
  return x.sizes() == at::IntArrayRef(sizes) &&
         (bytes.empty() || std::memcmp(x.contiguous().data_ptr(), bytes.data(), bytes.size()) == 0);
}

TensorPlan::TensorPlan(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
                       const TensorData& data)
    : sweeps_(sweeps.size()) {
  check_layout(frames, sweeps, data);
  for (size_t n = 0; n < sweeps.size(); ++n) {
    SweepOperand& given = sweeps_[n].given = sweeps[n];
    given.key_ranges.reset();
    given.query_rotary_positions.reset();
    given.key_rotary_positions.reset();
  }
  set(frames, sweeps, data);
}

void TensorPlan::set(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
                     const TensorData& data) {
  static_assert(sizeof(Frame) == 7 * sizeof(int64_t));
  static_assert(sizeof(KeyRange) == 2 * sizeof(int64_t));
  plan_.frames = values_of<Frame>(frames);
  plan_.sweeps.clear();
  for (size_t n = 0; n < sweeps.size(); ++n) {
    OwnSweep& own = sweeps_[n];
    own.key_ranges = sweeps[n].key_ranges;
    own.query_positions = sweeps[n].query_rotary_positions;
    own.key_positions = sweeps[n].key_rotary_positions;
    const int64_t entries = own.key_ranges.sizes[0], queries = own.key_ranges.sizes[1];
    plan_.sweeps.push_back({.query = side(own, own.query_positions, own.given.query_offset),
                            .key = side(own, own.key_positions, own.given.key_offset),
                            .key_ranges = own.key_ranges.values<KeyRange>().data(),
                            .batch_stride = entries > 1 ? queries : 0});
  }
  plan_.diagonals = {.farthest = data.farthest, .count = diagonals_of(data)};
  size_t n = 0;
  each_map(data, plan_.row_at, [&](const at::Tensor& map, std::span<const int32_t>& row_at) {
    row_at = (maps_[n++] = map).values<int32_t>();
  });
  axes_.clear();
  for (const at::Tensor& x : data.axes) axes_.emplace_back(x);
  plan_.axes.clear();
  for (size_t at = 0; at < axes_.size(); at += kAxisTensors) {
    const OwnTensor* const axis = axes_.data() + at;
    const auto stride = [](const OwnTensor& x) { return x.sizes[0] == 1 ? 0 : x.sizes[1]; };
    const auto bias = axis[kAxisBias].values<int32_t>();
    const auto on_query = axis[kAxisOnQuery].values<int32_t>();
    plan_.axes.push_back(
        {.query_positions = axis[kAxisQueries].values<int64_t>().data(),
         .key_positions = axis[kAxisKeys].values<int64_t>().data(),
         .query_batch_stride = stride(axis[kAxisQueries]),
         .key_batch_stride = stride(axis[kAxisKeys]),
         .distances = {.farthest = axis[kAxisFarthest].values<int64_t>()[0],
                       .count = static_cast<int64_t>(std::max(bias.size(), on_query.size()))},
         .bias = bias,
         .on_query = on_query});
  }
  pages_ = data.pages;
  plan_.pages = {};
  if (!pages_.defined) return;
  // An empty page table must not have a null address, which means that there is none.
  static constexpr int64_t kNone = 0;
  plan_.pages = {.at = pages_.bytes.empty() ? &kNone : pages_.values<int64_t>().data(),
                 .batch_stride = pages_.sizes[0] == 1 ? 0 : pages_.sizes[1],
                 .rows = data.key_rows};
}

SideRotation TensorPlan::side(const OwnSweep& sweep, const OwnTensor& positions,
                              const std::vector<Turns>& offset) {
  const Rotation& one = sweep.given.rotation;
  const std::vector<Rotation>& of_frames = sweep.given.of_frames;
  if (one.pairs.empty()) return {};
  const bool by_frame = !of_frames.empty();
  SideRotation side = {.rotation = by_frame ? of_frames.data() : &one,
                       .offset = offset,
                       .frame_stride = by_frame ? 1 : 0};
  if (!positions.defined) return side;
  const auto values = positions.values<int64_t>();
  if (!by_frame && rotates_nothing(one, values, offset)) return {};
  side.rotary_positions = values.data();
  side.axis_stride = positions.sizes[2];
  side.batch_stride = positions.sizes[0] == 1 ? 0 : positions.sizes[1] * positions.sizes[2];
  return side;
}

bool TensorPlan::has_rotations(const std::vector<SweepOperand>& sweeps) const {
  return std::ranges::equal(sweeps, sweeps_, [](const SweepOperand& a, const OwnSweep& own) {
    return same_rotation(a.rotation, own.given.rotation) &&
           std::ranges::equal(a.of_frames, own.given.of_frames, same_rotation) &&
           a.query_offset == own.given.query_offset && a.key_offset == own.given.key_offset;
  });
}

bool TensorPlan::serves(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
                        const TensorData& data) const {
  const auto own_frames = std::as_bytes(std::span(plan_.frames));
  if (frames.nbytes() != own_frames.size() || own_frames.empty() ||
      std::memcmp(frames.contiguous().data_ptr(), own_frames.data(), own_frames.size()) != 0)
    return false;
  bool same_maps = true;
  size_t n = 0;
  each_map(data, plan_.row_at, [&](const at::Tensor& map, std::span<const int32_t>) {
    same_maps = maps_[n++].equals(map) && same_maps;
  });
  return has_rotations(sweeps) &&
         std::ranges::equal(sweeps, sweeps_,
                            [](const SweepOperand& a, const OwnSweep& own) {
                              return own.key_ranges.equals(a.key_ranges) &&
                                     own.query_positions.equals(a.query_rotary_positions) &&
                                     own.key_positions.equals(a.key_rotary_positions);
                            }) &&
         data.farthest == plan_.diagonals.farthest && diagonals_of(data) == plan_.diagonals.count &&
         same_maps && pages_.equals(data.pages) &&
         std::ranges::equal(
             axes_, data.axes,
             [](const OwnTensor& own, const at::Tensor& x) { return own.equals(x); }) &&
         (!pages_.defined || data.key_rows == plan_.pages.rows);
}

bool TensorPlan::renew(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
                       const TensorData& data) {
  const auto queries = [](const Frame& a, const Frame& b) { return a.queries == b.queries; };
  if (!has_rotations(sweeps) ||
      !std::ranges::equal(values_of<Frame>(frames), plan_.frames, queries))
    return false;
  ++epoch_;
  set(frames, sweeps, data);
  return true;
}

template <class T>
std::shared_ptr<const PreparedPlan> TensorPlan::prepared(const Operands<T>& operands,
                                                         const Backend& backend, Passes passes,
                                                         const DeviceCall& call) const {
  const PlanShape shape = shape_of(operands, plan_);
  const std::lock_guard lock(mutex_);
  for (const Prepared& other : prepared_)
    if (other.epoch == epoch_ && &other.plan->backend() == &backend &&
        other.plan->shape() == shape && other.plan->passes() >= passes &&
        other.device == call.device()) {
      if (call.is_captured()) keep_for_graphs(other.plan);
      return other.plan;
    }
  if (call.is_captured())
    fail(
        "attend: expected a call with the same layout before the capture of a CUDA graph, as its "
        "plan is copied to the device");
  Context context(torch_executor());
  context.stream = call.stream();
  Prepared made = {.device = call.device(), .epoch = epoch_};
  // One of an earlier step, whose memory is used again.
  const auto earlier = std::ranges::find_if(prepared_, [&](const Prepared& other) {
    return other.epoch != epoch_ && &other.plan->backend() == &backend && backend.renew_plan &&
           other.plan->passes() == passes && other.plan.use_count() == 1;
  });
  if (earlier != prepared_.end()) made.plan = std::move(earlier->plan);
  std::erase_if(prepared_,
                [&](const Prepared& other) { return !other.plan || other.epoch != epoch_; });
  if (made.plan)
    made.plan->renew(plan_, shape, context);
  else
    made.plan = std::make_shared<PreparedPlan>(plan_, shape, backend, context, passes);
  prepared_.push_back(made);
  return made.plan;
}

template std::shared_ptr<const PreparedPlan> TensorPlan::prepared(const Operands<float>&,
                                                                  const Backend&, Passes,
                                                                  const DeviceCall&) const;
template std::shared_ptr<const PreparedPlan> TensorPlan::prepared(const Operands<double>&,
                                                                  const Backend&, Passes,
                                                                  const DeviceCall&) const;

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
