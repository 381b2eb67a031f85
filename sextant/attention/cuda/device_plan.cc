#include "sextant/attention/cuda/device_plan.h"

#include <algorithm>

#include "sextant/attention/operand_list.h"

namespace sextant::cuda {
namespace {

std::vector<Channel> channels_of(const Rotation& rotation, int64_t columns) {
  std::vector<Channel> channels(static_cast<size_t>(columns));
  for (size_t f = 0; f < rotation.pairs.size(); ++f) {
    const Rotation::Pair& pair = rotation.pairs[f];
    const auto number = static_cast<int32_t>(f);
    channels[static_cast<size_t>(pair.first)] = {number, pair.second, -1, pair.axis, pair.growth};
    channels[static_cast<size_t>(pair.second)] = {number, pair.first, 1, pair.axis, pair.growth};
  }
  return channels;
}

int64_t axes_of(const Rotation& rotation) {
  int axes = 0;
  for (const Rotation::Pair& pair : rotation.pairs) axes = std::max(axes, pair.axis + 1);
  return axes;
}

// The angles of all rows of a side.
void compute_angles(const Driver& driver, int64_t batches, DeviceSide& side, void* stream) {
  Arguments a;
  a.rows = side.times.rows;
  a.times = side.times;
  a.pairs = side.pairs.as<const PairFrequency>();
  a.pair_count = side.pair_count;
  a.gain = side.gain;
  a.angles = side.angles.as<float>();
  a.angles_of_batch = side.angles_of_batch;
  const int64_t all = a.rows * a.pair_count;
  if (all == 0) return;
  const Grid grid = {.x = (all + 127) / 128, .y = static_cast<int32_t>(batches), .threads = 128};
  expect_success("angles", driver.launch(Kernel::kAngles, {}, &grid, &a, stream));
}

}  // namespace

std::shared_ptr<DeviceSide> DevicePlan::side_of(const SideRotation& side, int64_t frame,
                                                int64_t rows, void* stream) const {
  if (!side.rotation) return nullptr;
  const Rotation& rotation = side.rotation[frame * side.frame_stride];
  if (rotation.pairs.empty()) return nullptr;
  auto to = std::make_shared<DeviceSide>();
  const int64_t batches = side.batch_stride == 0 ? 1 : shape_.batch, axes = axes_of(rotation);
  std::vector<int64_t> positions;
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t axis = 0; axis < axes; ++axis)
      for (int64_t row = 0; row < rows; ++row)
        positions.push_back(side.rotary_positions[b * side.batch_stride + axis * side.axis_stride +
                                                  row * side.row_stride]);
  std::vector<PairFrequency> pairs;
  for (size_t f = 0; f < rotation.pairs.size(); ++f) {
    const Rotation::Pair& pair = rotation.pairs[f];
    const Turns offset = side.offset.empty() ? Turns{} : side.offset[f];
    pairs.push_back({pair.frequency.high, pair.frequency.low, offset.high, offset.low, pair.axis});
    to->grows = to->grows || pair.growth != 0;
  }
  to->channels = uploaded(driver_, stream, channels_of(rotation, shape_.columns));
  to->positions = uploaded(driver_, stream, positions);
  to->pairs = uploaded(driver_, stream, pairs);
  to->pair_count = static_cast<int32_t>(pairs.size());
  to->times = {to->positions.as<const int64_t>(), batches == 1 ? 0 : axes * rows, rows};
  to->gain = static_cast<float>(rotation.gain);
  const int64_t of_batch = 2 * rows * to->pair_count;
  to->angles_of_batch = batches == 1 ? 0 : of_batch;
  to->angles = DeviceMemory(driver_, batches * of_batch * static_cast<int64_t>(sizeof(float)));
  compute_angles(driver_, batches, *to, stream);
  return to;
}

const std::vector<DevicePass>& DevicePlan::passes(int32_t tile, void* stream) {
  const auto found = passes_of_tile_.find(tile);
  if (found != passes_of_tile_.end()) return found->second;
  std::vector<DevicePass> list;
  for (PassPlan& host : passes_of(plan_, shape_, tile, passes_)) {
    DevicePass& pass = list.emplace_back();
    pass.frames = uploaded(driver_, stream, host.frames);
    pass.query_tiles = uploaded(driver_, stream, host.query_tiles);
    pass.spans = uploaded(driver_, stream, host.spans);
    pass.key_tiles = uploaded(driver_, stream, host.key_tiles);
    pass.parts = uploaded(driver_, stream, host.parts);
    const std::vector<Sweep>& sweeps = plan_.sweeps;
    for (size_t n = 0; n < sweeps.size(); ++n) {
      const auto same = [&](SideRotation Sweep::*side) {
        size_t m = 0;
        while (!same_side(sweeps[m].*side, sweeps[n].*side)) ++m;
        return m;
      };
      const size_t q = same(&Sweep::query), k = same(&Sweep::key);
      pass.queries.push_back(q < n ? pass.queries[q]
                                   : side_of(sweeps[n].query, host.frame, shape_.queries, stream));
      pass.keys.push_back(k < n ? pass.keys[k]
                                : side_of(sweeps[n].key, host.frame, shape_.keys, stream));
    }
    pass.host = std::move(host);
  }
  expect_success("plan", driver_.wait(stream));  // the angles, which other streams may use
  return passes_of_tile_.emplace(tile, std::move(list)).first->second;
}

const Visible* DevicePlan::visible(void* stream) {
  if (!visible_.as<void>()) visible_ = uploaded(driver_, stream, visible_rows(plan_, shape_));
  return visible_.as<const Visible>();
}

const int64_t* DevicePlan::page_table(void* stream) {
  if (!plan_.pages) return nullptr;
  if (!page_table_.as<void>()) {
    const int64_t pages = (plan_.pages.rows + shape_.page_rows - 1) / shape_.page_rows;
    std::vector<int64_t> table;
    for (int64_t b = 0; b < shape_.batch; ++b)
      for (int64_t n = 0; n < pages; ++n)
        table.push_back(plan_.pages.at[b * plan_.pages.batch_stride + n]);
    page_table_ = uploaded(driver_, stream, table);
  }
  return page_table_.as<const int64_t>();
}

const AxisRows* DevicePlan::axes(void* stream) {
  if (axes_.as<void>()) return axes_.as<const AxisRows>();
  const auto on_device = [&](const std::vector<int32_t>& from) {
    return of_axes_.emplace_back(uploaded(driver_, stream, from)).as<const int32_t>();
  };
  // The last 32 bits of positions: the differences of those that meet have no more.
  const auto positions = [&](const int64_t* at, int64_t batch_stride, int64_t rows,
                             int64_t origin) {
    std::vector<int32_t> to;
    for (int64_t b = 0; b < (batch_stride == 0 ? 1 : shape_.batch); ++b)
      for (int64_t n = 0; n < rows; ++n)
        to.push_back(static_cast<int32_t>(static_cast<uint64_t>(at[b * batch_stride + n]) -
                                          static_cast<uint64_t>(origin)));
    return on_device(to);
  };
  const auto map = [&](std::span<const int32_t> rows) {
    return on_device(std::vector<int32_t>(rows.begin(), rows.end()));
  };
  std::vector<AxisRows> list;
  for (const PositionAxis& axis : plan_.axes) {
    list.push_back({.query_at = positions(axis.query_positions, axis.query_batch_stride,
                                          shape_.queries, axis.distances.farthest),
                    .key_at = positions(axis.key_positions, axis.key_batch_stride, shape_.keys, 0),
                    .query_stride = axis.query_batch_stride == 0 ? 0 : shape_.queries,
                    .key_stride = axis.key_batch_stride == 0 ? 0 : shape_.keys,
                    .bias = map(axis.bias),
                    .on_query = map(axis.on_query)});
  }
  axes_ = uploaded(driver_, stream, list);
  return axes_.as<const AxisRows>();
}

std::span<const int32_t> DevicePlan::host_map(TableOf table) const {
  std::span<const int32_t> found;
  auto before = static_cast<int>(table);
  each_table([&](auto operand) {
    if (before-- == 0) found = operand.of(plan_.row_at);
  });
  return found;
}

const int32_t* DevicePlan::row_map(TableOf table, void* stream) {
  const std::span<const int32_t> map = host_map(table);
  if (map.empty()) return nullptr;
  DeviceMemory& memory = maps_[static_cast<size_t>(table)];
  if (!memory.as<void>())
    memory = uploaded(driver_, stream, std::vector<int32_t>(map.begin(), map.end()));
  return memory.as<const int32_t>();
}

const DevicePlan::DiagonalLists& DevicePlan::diagonals(TableOf table, int64_t rows, void* stream) {
  DiagonalLists& lists = diagonals_[static_cast<size_t>(table)];
  if (lists.rows != rows) {
    const DiagonalsOfRows host = diagonals_of_rows(host_map(table), plan_.diagonals.count, rows);
    lists.row_begin = uploaded(driver_, stream, host.row_begin);
    lists.diagonal_at = uploaded(driver_, stream, host.diagonal_at);
    lists.rows = rows;
  }
  return lists;
}

}  // namespace sextant::cuda
