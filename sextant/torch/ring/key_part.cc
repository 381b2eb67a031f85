#include "sextant/torch/ring/key_part.h"

#include <ATen/TensorOperators.h>

#include <algorithm>

#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/operators/views.h"

namespace sextant {
namespace {

// Ranges of key rows, counted from the first of `keys`.
at::Tensor cut_ranges(const at::Tensor& ranges, const Positions& keys) {
  return ranges.clamp(keys.first, keys.end()) - keys.first;
}

Frame cut_frame(Frame frame, const Positions& keys) {
  const int64_t first = std::max(frame.key_row, keys.first);
  const int64_t last = std::min(frame.key_row + frame.keys, keys.end());
  frame.keys = std::max<int64_t>(last - first, 0);
  frame.key_position += first - frame.key_row;
  frame.key_row = frame.keys > 0 ? first - keys.first : 0;
  return frame;
}

at::Tensor cut_frames(const at::Tensor& frames, const Positions& keys) {
  at::Tensor cut = frames.clone();
  auto* to = reinterpret_cast<Frame*>(cut.data_ptr<int64_t>());
  for (const Frame& frame : values_of<Frame>(frames)) *to++ = cut_frame(frame, keys);
  return cut;
}

// The distances of pairs in `frames`, as far as they are in `all`; none if there are no pairs.
Diagonals distances_of(const at::Tensor& frames, const Diagonals& all) {
  int64_t farthest = all.farthest - all.count, nearest = all.farthest + 1;
  for (const Frame& f : values_of<Frame>(frames)) {
    if (f.queries == 0 || f.keys == 0) continue;
    farthest = std::max(farthest, f.distance(f.query_row + f.queries - 1, f.key_row));
    nearest = std::min(nearest, f.distance(f.query_row, f.key_row + f.keys - 1));
  }
  farthest = std::min(farthest, all.farthest);
  nearest = std::max(nearest, all.farthest - all.count + 1);
  return {.farthest = farthest, .count = std::max<int64_t>(farthest - nearest + 1, 0)};
}

}  // namespace

bool sees(const TensorOperands& whole, const Positions& keys) {
  return std::ranges::any_of(whole.sweeps, [&](const SweepOperand& sweep) {
    const at::Tensor cut = cut_ranges(sweep.key_ranges, keys);
    return (cut.select(2, 1) > cut.select(2, 0)).any().item<bool>();
  });
}

TensorOperands key_part(const TensorOperands& whole, const Diagonals& diagonals,
                        const Positions& keys, const at::Tensor& k, const at::Tensor& v) {
  TensorOperands part = whole;
  part.plans = {};
  part.sink = part.query_sink = at::Tensor();
  part.k = k;
  part.v = v;
  part.whole_lse = true;
  part.frames = cut_frames(whole.frames, keys);
  for (SweepOperand& sweep : part.sweeps) {
    sweep.key_ranges = cut_ranges(sweep.key_ranges, keys);
    if (sweep.key_rotary_positions.defined())
      sweep.key_rotary_positions = sweep.key_rotary_positions.narrow(2, keys.first, keys.count);
  }
  for (size_t at = kAxisKeys; at < part.axes.size(); at += kAxisTensors)
    part.axes[at] = part.axes[at].narrow(1, keys.first, keys.count);
  const Diagonals own = distances_of(part.frames, diagonals);
  const int64_t first = diagonals.index(own.farthest);
  part.farthest = own.farthest;
  each_tensor(part, [&](auto operand, at::Tensor& x) {
    if constexpr (operand.has(Axis::kRows)) {
      at::Tensor& row_at = operand.of(part).row_at;
      if (row_at.defined())
        row_at = row_at.narrow(0, first, own.count);
      else if (x.defined())
        x = x.narrow(operand.dim(Axis::kRows), first, own.count);
    } else if constexpr (!operand.has(Axis::kKeyHeads)) {
      narrow_to(operand, Axis::kKeys, keys.first, keys.count, x);
      narrow_to(operand, Axis::kDiagonals, first, own.count, x);
    }
  });
  part.lazy_query_bias.diagonals = own;
  return part;
}

}  // namespace sextant
