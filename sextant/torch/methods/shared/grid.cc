#include "sextant/torch/methods/shared/grid.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include "sextant/base/error.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

constexpr int64_t kMostOfSide = 4096;

// Positions of rows on both axes, [1, 2, rows].
at::Tensor places(const std::string& method, const at::Tensor& positions, const Grid& grid,
                  int64_t first) {
  at::Tensor both = at::empty({1, 2, positions.size(0)}, at::kLong);
  const int64_t* const from = positions.data_ptr<int64_t>();
  int64_t* const to = both.data_ptr<int64_t>();
  const int64_t rows = positions.size(0);
  for (int64_t n = 0; n < rows; ++n) {
    const int64_t place = from[n] - first;
    if (place < -first || place >= grid.places())
      fail(method + ": grid: expected positions 0 to " + std::to_string(grid.places() + first - 1) +
           ", as [" + std::to_string(grid.height) + ", " + std::to_string(grid.width) +
           "] has, but got " + std::to_string(from[n]));
    to[n] = place < 0 ? -1 : place / grid.width;
    to[rows + n] = place < 0 ? -1 : place % grid.width;
  }
  return both;
}

// The given positions, which must be on the grid, or at -1 where there are rows before it.
const at::Tensor& checked(const std::string& method, const at::Tensor& given, const Grid& grid,
                          int64_t first) {
  const int64_t sizes[] = {grid.height, grid.width}, lowest = first > 0 ? -1 : 0;
  for (int64_t axis = 0; axis < 2 && given.numel() > 0; ++axis) {
    const at::Tensor on = given.select(1, axis);
    const int64_t low = on.min().item<int64_t>(), high = on.max().item<int64_t>();
    if (low < lowest || high >= sizes[axis])
      fail(method + ": positions: expected " + std::to_string(lowest) + " to " +
           std::to_string(sizes[axis] - 1) + " on axis " + std::to_string(axis) + ", but got " +
           std::to_string(low < lowest ? low : high));
  }
  return given;
}

}  // namespace

Grid grid_option(const Options& options, const std::string& name) {
  const std::vector<int64_t> sides = options.integers(name, 1, kMostOfSide);
  if (sides.size() != 2) options.refuse(name, "[height, width]");
  return {sides[0], sides[1]};
}

GridPositions grid_positions(const std::string& method, const Layout& layout, const Grid& grid,
                             int64_t first) {
  const auto side = [&](const at::Tensor& given, const at::Tensor& of_rows, auto&& rotary) {
    return given.defined() ? checked(method, rotary(layout, 2), grid, first)
                           : places(method, of_rows, grid, first);
  };
  return {side(layout.query_rotary_positions, query_positions(layout), query_rotary_positions),
          side(layout.key_rotary_positions, key_positions(layout), key_rotary_positions)};
}

MadeAxis::MadeAxis(const at::Tensor& queries, const at::Tensor& keys)
    : axis{.query_positions = queries.contiguous(), .key_positions = keys.contiguous()} {
  if (queries.numel() == 0 || keys.numel() == 0) return;
  axis.farthest = (queries.max() - keys.min()).item<int64_t>();
  distances = axis.farthest - (queries.min() - keys.max()).item<int64_t>() + 1;
}

at::Tensor MadeAxis::map_of(const std::vector<int32_t>& rows) { return tensor_of(rows); }

at::Tensor PairDistances::positions(const at::Tensor& on_both) const {
  return on_both.select(1, 0) * step() + on_both.select(1, 1);
}

}  // namespace sextant
