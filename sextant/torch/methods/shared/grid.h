// Rows at positions on a grid, for methods whose operands go by distances on its axes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sextant/torch/layout.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operands.h"

namespace sextant {

// The sizes of a grid whose rows of q and k are its places, a grid row after the other.
struct Grid {
  int64_t height = 0, width = 0;

  int64_t places() const { return height * width; }
};

// The option `name`, [height, width]. It must be given: with the sizes of another grid all rows
// would be other places, and no check could tell.
Grid grid_option(const Options& options, const std::string& name);

// The positions of queries and keys on some axes, int64 [1 or batch, axes, rows].
struct GridPositions {
  at::Tensor queries, keys;

  // Those of one axis, [1 or batch, rows].
  at::Tensor queries_on(int64_t axis) const { return queries.select(1, axis); }
  at::Tensor keys_on(int64_t axis) const { return keys.select(1, axis); }
};

// Whether the layout has rotary positions, on 2 axes. Throws Error that names the method if only
// queries or only keys have them.
bool has_positions(const std::string& method, const Layout& layout);

// These positions (vertical, horizontal); without them row n of a sequence is place n - first of
// the grid, and the `first` rows before (a class token) are at -1, -1. Throws Error that names the
// method if a row is outside of the grid.
GridPositions grid_positions(const std::string& method, const Layout& layout, const Grid& grid,
                             int64_t first = 0);

// An axis with these positions, [1 or batch, rows], without maps.
struct MadeAxis {
  AxisOperand axis;
  int64_t distances = 0;  // entries of its maps

  // Throws Error that names the method if positions are too far apart.
  MadeAxis(const std::string& method, const at::Tensor& queries, const at::Tensor& keys);
  int64_t distance(int64_t entry) const { return axis.farthest - entry; }
  // The map that f(distance) -> row gives.
  template <class F>
  at::Tensor rows(F&& f) const {
    std::vector<int32_t> all;
    for (int64_t n = 0; n < distances; ++n) all.push_back(static_cast<int32_t>(f(distance(n))));
    return tensor_of(all);
  }
};

// The axis of vertical and horizontal distances at once: its positions are places of a grid that is
// wide enough for each pair of distances to have a number of its own,
//
//   (vertical distance) * (2 width - 1) + horizontal distance
//
// which is at least -last() and at most last().
struct PairDistances {
  Grid grid;

  int64_t step() const { return 2 * grid.width - 1; }
  int64_t last() const { return (grid.height - 1) * step() + grid.width - 1; }
  int64_t count() const { return 2 * last() + 1; }
  // The two distances of a number.
  int64_t vertical(int64_t number) const { return (number + last()) / step() - grid.height + 1; }
  int64_t horizontal(int64_t number) const { return (number + last()) % step() - grid.width + 1; }
  // Positions on that axis from positions on both, of queries or of keys, [1 or batch, rows].
  at::Tensor positions(const at::Tensor& on_both) const;
  MadeAxis axis(const std::string& method, const GridPositions& on_both) const {
    return {method, positions(on_both.queries), positions(on_both.keys)};
  }
};

}  // namespace sextant
