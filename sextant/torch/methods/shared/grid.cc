#include "sextant/torch/methods/shared/grid.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include "sextant/attention/plan.h"
#include "sextant/base/error.h"

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
  constexpr const char* kExpected = "[height, width]";
  if (options.value(name).is_null()) options.refuse(name, kExpected);
  const std::vector<int64_t> sides = options.integers(name, 1, kMostOfSide);
  if (sides.size() != 2) options.refuse(name, kExpected);
  return {sides[0], sides[1]};
}

bool has_positions(const std::string& method, const Layout& layout) {
  const bool queries = layout.query_rotary_positions.defined();
  if (queries != layout.key_rotary_positions.defined())
    fail(method + ": query_positions, key_positions: expected both or none, but got those of " +
         (queries ? "queries" : "keys"));
  return queries;
}

GridPositions grid_positions(const std::string& method, const Layout& layout, const Grid& grid,
                             int64_t first) {
  if (!has_positions(method, layout))
    return {places(method, query_positions(layout), grid, first),
            places(method, key_positions(layout), grid, first)};
  return {checked(method, query_rotary_positions(layout, 2), grid, first),
          checked(method, key_rotary_positions(layout, 2), grid, first)};
}

MadeAxis::MadeAxis(const std::string& method, const at::Tensor& queries, const at::Tensor& keys)
    : axis{.query_positions = queries.contiguous(), .key_positions = keys.contiguous()} {
  if (queries.numel() == 0 || keys.numel() == 0) return;
  PositionRange of_queries, of_keys;
  of_queries.include(axis.query_positions.data_ptr<int64_t>(), queries.numel());
  of_keys.include(axis.key_positions.data_ptr<int64_t>(), keys.numel());
  for (const int64_t position : {of_queries.first, of_queries.last, of_keys.first, of_keys.last})
    if (position < -kMostAxisDistances / 4 || position > kMostAxisDistances / 4)
      fail(method + ": positions: expected " + std::to_string(-kMostAxisDistances / 4) + " to " +
           std::to_string(kMostAxisDistances / 4) + ", but got " + std::to_string(position));
  axis.farthest = of_queries.last - of_keys.first;
  distances = axis.farthest - (of_queries.first - of_keys.last) + 1;
}

at::Tensor PairDistances::positions(const at::Tensor& on_both) const {
  return on_both.select(1, 0) * step() + on_both.select(1, 1);
}

}  // namespace sextant
