// The operands of a method as arguments of the operator: the inverse of sweeps_of().
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/operators/flat_operands.h"
#include "sextant/torch/operators/tensor_plan.h"

namespace sextant {
namespace {

using Sweeps = std::vector<SweepOperand>;

// One tensor field of all sweeps, [S, 1 or batch, ...]. A sweep without it gets zeros: rotary
// positions are not read without a rotation. Throws Error if only some rotations have them.
at::Tensor stacked(const Sweeps& sweeps, at::Tensor SweepOperand::*field) {
  at::Tensor like;
  int64_t batch = 1;
  for (const SweepOperand& sweep : sweeps)
    if (const at::Tensor& x = sweep.*field; x.defined()) {
      if (x.dim() != 3)
        fail("attend: sweeps: expected key_ranges and rotary_positions of 3 dimensions, but got " +
             std::to_string(x.dim()));
      like = x;
      batch = std::max(batch, x.size(0));
    }
  if (!like.defined()) return {};
  std::vector<at::Tensor> parts;
  for (const SweepOperand& sweep : sweeps) {
    const at::Tensor& x = sweep.*field;
    if (!x.defined() && !sweep.rotation.pairs.empty())
      fail("attend: sweeps: expected rotary positions for every rotation, or for none");
    parts.push_back(x.defined() ? x.expand({batch, x.size(1), x.size(2)})
                                : at::zeros({1, 1, 1}, at::kLong).expand_as(like));
  }
  return at::stack(parts);
}

void write(Turns turns, int64_t* to) {
  to[0] = static_cast<int64_t>(turns.high);
  to[1] = static_cast<int64_t>(turns.low);
}

// [S, pairs, 2], or undefined if no sweep has any.
at::Tensor stacked(const Sweeps& sweeps, std::vector<Turns> SweepOperand::*field, int64_t pairs) {
  if (std::ranges::all_of(sweeps, [&](const auto& sweep) { return (sweep.*field).empty(); }))
    return {};
  at::Tensor offsets = at::zeros({static_cast<int64_t>(sweeps.size()), pairs, 2}, at::kLong);
  int64_t* to = offsets.data_ptr<int64_t>();
  for (const SweepOperand& sweep : sweeps) {
    const std::vector<Turns>& from = sweep.*field;
    for (size_t f = 0; f < from.size(); ++f) write(from[f], to + 2 * f);
    to += 2 * pairs;
  }
  return offsets;
}

void pack_rotations(const Sweeps& sweeps, int64_t pairs, FlatOperands& a) {
  const auto count = static_cast<int64_t>(sweeps.size());
  a.pairs = at::full({count, pairs, 3}, -1, at::kLong);
  a.frequencies = at::zeros({count, pairs, 2}, at::kLong);
  a.growth = at::zeros({count, pairs}, at::kDouble);
  a.gains = at::empty({count}, at::kDouble);
  for (int64_t n = 0; n < count; ++n) {
    const Rotation& rotation = sweeps[static_cast<size_t>(n)].rotation;
    a.gains.data_ptr<double>()[n] = rotation.gain;
    int64_t at = n * pairs;
    for (const Rotation::Pair& pair : rotation.pairs) {
      int64_t* columns = a.pairs.data_ptr<int64_t>() + at * 3;
      columns[0] = pair.first, columns[1] = pair.second, columns[2] = pair.axis;
      write(pair.frequency, a.frequencies.data_ptr<int64_t>() + at * 2);
      a.growth.data_ptr<double>()[at++] = pair.growth;
    }
  }
  a.query_rotary_positions = stacked(sweeps, &SweepOperand::query_rotary_positions);
  a.key_rotary_positions = stacked(sweeps, &SweepOperand::key_rotary_positions);
  a.query_offsets = stacked(sweeps, &SweepOperand::query_offset, pairs);
  a.key_offsets = stacked(sweeps, &SweepOperand::key_offset, pairs);
}

// Frequencies of frames; a sweep without its own has the same rotation in all of them.
void pack_frame_rotations(const Sweeps& sweeps, int64_t frames, int64_t pairs, FlatOperands& a) {
  const auto count = static_cast<int64_t>(sweeps.size());
  a.frame_frequencies = at::zeros({count, frames, pairs, 2}, at::kLong);
  a.frame_gains = at::empty({count, frames}, at::kDouble);
  int64_t* frequencies = a.frame_frequencies.data_ptr<int64_t>();
  double* gains = a.frame_gains.data_ptr<double>();
  for (const SweepOperand& sweep : sweeps) {
    const bool own = !sweep.of_frames.empty();
    for (int64_t n = 0; n < frames; ++n, frequencies += 2 * pairs) {
      const Rotation& rotation = own ? sweep.of_frames[static_cast<size_t>(n)] : sweep.rotation;
      for (size_t f = 0; f < rotation.pairs.size(); ++f)
        write(rotation.pairs[f].frequency, frequencies + 2 * f);
      *gains++ = rotation.gain;
    }
  }
}

}  // namespace

FlatOperands flat_of(const TensorOperands& o) {
  for (const SweepOperand& sweep : o.sweeps)
    check_pairs(sweep, o.frames.defined() ? o.frames.size(0) : 0);
  FlatOperands a = {o};
  a.frames = o.frames;
  a.key_ranges = stacked(o.sweeps, &SweepOperand::key_ranges);
  if (!a.key_ranges.defined()) a.key_ranges = at::empty({0, 1, o.q.size(2), 2}, at::kLong);
  size_t pairs = 0;
  for (const SweepOperand& sweep : o.sweeps) pairs = std::max(pairs, sweep.rotation.pairs.size());
  if (pairs > 0) {
    pack_rotations(o.sweeps, static_cast<int64_t>(pairs), a);
    if (std::ranges::any_of(o.sweeps, [](const auto& sweep) { return !sweep.of_frames.empty(); }))
      pack_frame_rotations(o.sweeps, o.frames.size(0), static_cast<int64_t>(pairs), a);
  }
  return a;
}

}  // namespace sextant
