#include "sextant/torch/operators/tensor_plan.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/operators/executor.h"
#include "sextant/torch/operators/shape_checks.h"
#include "sextant/torch/operators/tensor_values.h"

namespace sextant {
namespace {

template <class Values>
bool has_values(const at::Tensor& x, const Values& values) {
  using Value = typename Values::value_type;
  if (!x.defined()) return values.empty();
  if (x.nbytes() != values.size() * sizeof(Value)) return false;
  const at::Tensor whole = x.contiguous();
  return values.empty() || std::memcmp(whole.data_ptr(), values.data(), x.nbytes()) == 0;
}

bool same(const Rotation& a, const Rotation& b) {
  return a.gain == b.gain && std::ranges::equal(a.pairs, b.pairs, [](const auto& x, const auto& y) {
           return x.first == y.first && x.second == y.second && x.speed == y.speed &&
                  x.growth == y.growth && x.axis == y.axis;
         });
}

// The batch stride of a contiguous tensor, or 0 if entries share it.
int64_t batch_stride(const at::Tensor& x) { return x.size(0) == 1 ? 0 : x.size(1) * x.size(2); }

void append_sizes(const at::Tensor& x, std::vector<int64_t>& sizes) {
  if (x.defined()) sizes.insert(sizes.end(), x.sizes().begin(), x.sizes().end());
}

std::vector<int64_t> sizes_of(const SweepOperand& sweep) {
  std::vector<int64_t> sizes;
  for (const at::Tensor* x :
       {&sweep.key_ranges, &sweep.query_rotary_positions, &sweep.key_rotary_positions}) {
    append_sizes(*x, sizes);
    sizes.push_back(-1);
  }
  return sizes;
}

// Whether all rows of a side have position 0, phase 0 and gain 1, as keys beyond ReRoPE's window
// have. Without a rotation such rows need no panels of their own.
bool rotates_nothing(const Rotation& rotation, const std::vector<int64_t>& rotary_positions,
                     const std::vector<Turns>& offset) {
  return rotation.gain == 1 &&
         std::ranges::all_of(offset, [](const Turns& phase) { return phase == Turns{}; }) &&
         std::ranges::all_of(rotation.pairs, [](const auto& pair) { return pair.growth == 0; }) &&
         std::ranges::all_of(rotary_positions, [](int64_t position) { return position == 0; });
}

void check_axes(const char* name, const Rotation& rotation, const at::Tensor& rotary_positions) {
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
  if (!sweep.query_rotary_positions.defined())
    refuse("query_rotary_positions", "a tensor, as there are pairs", "none");
  if (!sweep.key_rotary_positions.defined())
    refuse("key_rotary_positions", "a tensor, as there are pairs", "none");
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

TensorPlan::TensorPlan(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
                       const TensorData& data) {
  check_layout(frames, sweeps, data);
  static_assert(sizeof(Frame) == 7 * sizeof(int64_t));
  static_assert(sizeof(KeyRange) == 2 * sizeof(int64_t));
  plan_.frames = values_of<Frame>(frames);
  sweeps_.reserve(sweeps.size());  // the plan points into them
  for (const SweepOperand& sweep : sweeps) add_sweep(sweep);
  plan_.diagonals = {.farthest = data.farthest, .count = diagonals_of(data)};
  each_map(data, plan_.row_at, [&](const at::Tensor& map, std::span<const int32_t>& row_at) {
    row_at = maps_.emplace_back(values_of<int32_t>(map));
  });
  if (data.pages.defined()) {
    pages_ = values_of<int64_t>(data.pages);
    append_sizes(data.pages, page_sizes_);
    // An empty page table must not have a null address, which means that there is none.
    static constexpr int64_t kNone = 0;
    plan_.pages = {.at = pages_.empty() ? &kNone : pages_.data(),
                   .batch_stride = data.pages.size(0) == 1 ? 0 : data.pages.size(1),
                   .rows = data.key_rows};
  }
}

void TensorPlan::add_sweep(const SweepOperand& given) {
  OwnSweep& own = sweeps_.emplace_back();
  own.key_ranges = values_of<KeyRange>(given.key_ranges);
  own.query_rotary_positions = values_of<int64_t>(given.query_rotary_positions);
  own.key_rotary_positions = values_of<int64_t>(given.key_rotary_positions);
  own.given = given;
  own.given.key_ranges.reset();
  own.given.query_rotary_positions.reset();
  own.given.key_rotary_positions.reset();
  own.sizes = sizes_of(given);
  if (!given.rotation.pairs.empty())
    own.rotations = given.of_frames.empty() ? std::vector{given.rotation} : given.of_frames;
  Sweep sweep = {.key_ranges = own.key_ranges.data(), .batch_stride = 0};
  if (given.key_ranges.size(0) > 1) sweep.batch_stride = given.key_ranges.size(1);
  sweep.query =
      side(own, given.query_rotary_positions, own.query_rotary_positions, own.given.query_offset);
  sweep.key = side(own, given.key_rotary_positions, own.key_rotary_positions, own.given.key_offset);
  plan_.sweeps.push_back(sweep);
}

SideRotation TensorPlan::side(const OwnSweep& sweep, const at::Tensor& rotary_positions,
                              const std::vector<int64_t>& values,
                              const std::vector<Turns>& offset) const {
  if (sweep.rotations.empty()) return {};
  const bool by_frame = !sweep.given.of_frames.empty();
  if (!by_frame && rotates_nothing(sweep.rotations[0], values, offset)) return {};
  return {.rotation = sweep.rotations.data(),
          .rotary_positions = values.data(),
          .batch_stride = batch_stride(rotary_positions),
          .axis_stride = rotary_positions.size(2),
          .row_stride = 1,
          .offset = offset,
          .frame_stride = by_frame ? 1 : 0};
}

bool TensorPlan::serves(const at::Tensor& frames, const std::vector<SweepOperand>& sweeps,
                        const TensorData& data) const {
  if (sweeps.size() != sweeps_.size() || !has_values(frames, plan_.frames)) return false;
  for (size_t n = 0; n < sweeps.size(); ++n) {
    const SweepOperand& given = sweeps[n];
    const OwnSweep& own = sweeps_[n];
    if (!has_values(given.key_ranges, own.key_ranges) ||
        !has_values(given.query_rotary_positions, own.query_rotary_positions) ||
        !has_values(given.key_rotary_positions, own.key_rotary_positions) ||
        !same(given.rotation, own.given.rotation) ||
        !std::ranges::equal(given.of_frames, own.given.of_frames, same) ||
        given.query_offset != own.given.query_offset || given.key_offset != own.given.key_offset ||
        sizes_of(given) != own.sizes)
      return false;
  }
  if (data.farthest != plan_.diagonals.farthest || diagonals_of(data) != plan_.diagonals.count)
    return false;
  bool same_maps = true;
  each_map(data, plan_.row_at, [&](const at::Tensor& map, std::span<const int32_t> row_at) {
    same_maps = same_maps && has_values(map, row_at);
  });
  if (!same_maps) return false;
  if (data.pages.defined() != static_cast<bool>(plan_.pages)) return false;
  if (!data.pages.defined()) return true;
  std::vector<int64_t> page_sizes;
  append_sizes(data.pages, page_sizes);
  return has_values(data.pages, pages_) && page_sizes == page_sizes_ &&
         data.key_rows == plan_.pages.rows;
}

template <class T>
std::shared_ptr<const PreparedPlan> TensorPlan::prepared(const Operands<T>& operands,
                                                         const Backend& backend, Passes passes,
                                                         const DeviceCall& call) const {
  const PlanShape shape = shape_of(operands, plan_);
  const std::lock_guard lock(mutex_);
  for (const auto& [other, device] : prepared_)
    if (&other->backend() == &backend && other->shape() == shape && other->passes() >= passes &&
        device == call.device()) {
      if (call.is_captured()) keep_for_graphs(other);
      return other;
    }
  if (call.is_captured())
    fail(
        "attend: expected a call with the same layout before the capture of a CUDA graph, as its "
        "plan is copied to the device");
  Context context(torch_executor());
  context.stream = call.stream();
  auto made = std::make_shared<const PreparedPlan>(plan_, shape, backend, context, passes);
  prepared_.push_back({made, call.device()});
  return made;
}

template std::shared_ptr<const PreparedPlan> TensorPlan::prepared(const Operands<float>&,
                                                                  const Backend&, Passes,
                                                                  const DeviceCall&) const;
template std::shared_ptr<const PreparedPlan> TensorPlan::prepared(const Operands<double>&,
                                                                  const Backend&, Passes,
                                                                  const DeviceCall&) const;

}  // namespace sextant
