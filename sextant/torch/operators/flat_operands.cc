// The arguments in one order, for the schema, for stacks and from them, and their checks.
//
// The operands of a method as arguments of the operator: the inverse of sweeps_of().
#include "sextant/torch/operators/flat_operands.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/operators/tensor_plan.h"

namespace sextant {
namespace {

// Calls f for every argument in the order of the schema.
template <class A, class F>
void each_argument(A& a, F&& f) {
  f(a.q), f(a.k), f(a.v), f(a.scale), f(a.frames), f(a.key_ranges);
  f(a.pairs), f(a.frequencies), f(a.growth), f(a.gains);
  f(a.query_rotary_positions), f(a.key_rotary_positions), f(a.query_offsets), f(a.key_offsets);
  f(a.frame_frequencies), f(a.frame_gains), f(a.farthest);
  each_operand([&](auto operand) {
    if constexpr (operand.presence == Presence::kOptional) f(tensor_of(operand.of(a)));
    if constexpr (operand.has(Axis::kRows)) f(operand.of(a).row_at);
  });
  f(a.pages), f(a.key_rows), f(a.softcap), f(a.dropout.p), f(a.dropout.seed);
  f(a.dropout.first_query), f(a.whole_lse), f(a.int8_pages), f(a.axes);
}

struct Push {
  torch::jit::Stack& stack;
  void operator()(const at::Tensor& x) {
    stack.push_back(x.defined() ? at::IValue(x) : at::IValue());
  }
  void operator()(const std::vector<at::Tensor>& x) {
    stack.push_back(x.empty() ? at::IValue() : at::IValue(x));
  }
  void operator()(const auto& x) { stack.emplace_back(x); }
};

struct Read {
  torch::jit::Stack::iterator at;
  void operator()(at::Tensor& x) {
    if (!at->isNone()) x = std::move(*at).toTensor();
    ++at;
  }
  void operator()(std::vector<at::Tensor>& x) {
    if (!at->isNone()) x = at->toTensorVector();
    ++at;
  }
  template <class Number>
  void operator()(Number& x) {
    x = (at++)->to<Number>();
  }
};

struct RotationTensor {
  const char* name;
  const at::Tensor* x;
  at::ScalarType type;
  std::vector<Size> sizes;
  bool needed = false;  // where there are pairs
};

std::vector<RotationTensor> rotation_tensors(const FlatOperands& a) {
  const Size sweeps = {Size::kExactly, a.key_ranges.sym_size(0)};
  const Size frames = {Size::kExactly, a.frames.sym_size(0)};
  const Size batch = {Size::kOneOr, a.q.sym_size(0)};
  const std::vector<Size> of_queries = {sweeps, batch, {}, {Size::kExactly, a.q.sym_size(2)}};
  const std::vector<Size> of_keys = {sweeps, batch, {}, {Size::kExactly, key_rows(a)}};
  Size pairs;
  if (a.pairs.defined() && a.pairs.dim() == 3) pairs = {Size::kExactly, a.pairs.sym_size(1)};
  return {{"pairs", &a.pairs, at::kLong, {sweeps, pairs, 3}},
          {"frequencies", &a.frequencies, at::kLong, {sweeps, pairs, 2}, true},
          {"growth", &a.growth, at::kDouble, {sweeps, pairs}},
          {"gains", &a.gains, at::kDouble, {sweeps}},
          {"query_rotary_positions", &a.query_rotary_positions, at::kLong, of_queries},
          {"key_rotary_positions", &a.key_rotary_positions, at::kLong, of_keys},
          {"query_offsets", &a.query_offsets, at::kLong, {sweeps, pairs, 2}},
          {"key_offsets", &a.key_offsets, at::kLong, {sweeps, pairs, 2}},
          {"frame_frequencies", &a.frame_frequencies, at::kLong, {sweeps, frames, pairs, 2}},
          {"frame_gains",
           &a.frame_gains,
           at::kDouble,
           {sweeps, frames},
           a.frame_frequencies.defined()}};
}

Turns turns_at(const int64_t* halves) {
  return {static_cast<uint64_t>(halves[0]), static_cast<uint64_t>(halves[1])};
}

int column(const char* field, int64_t value) {
  if (value < 0 || value > std::numeric_limits<int>::max())
    fail("attend: pairs: " + std::string(field) +
         ": expected at least 0 (or -1 for no pair), but got " + std::to_string(value));
  return static_cast<int>(value);
}

// The rotation of one sweep, without the pairs that are padding.
Rotation rotation_at(const FlatOperands& a, int64_t sweep) {
  Rotation rotation;
  const int64_t pairs = a.pairs.size(1);
  const int64_t* columns = a.pairs.data_ptr<int64_t>() + sweep * pairs * 3;
  const int64_t* frequencies = a.frequencies.data_ptr<int64_t>() + sweep * pairs * 2;
  for (int64_t f = 0; f < pairs; ++f, columns += 3, frequencies += 2) {
    if (columns[0] == -1) continue;
    const double growth = a.growth.defined() ? a.growth.data_ptr<double>()[sweep * pairs + f] : 0;
    rotation.pairs.push_back({.first = column("first", columns[0]),
                              .second = column("second", columns[1]),
                              .frequency = turns_at(frequencies),
                              .growth = growth,
                              .axis = column("axis", columns[2])});
  }
  if (a.gains.defined()) rotation.gain = a.gains.data_ptr<double>()[sweep];
  return rotation;
}

std::vector<Turns> offsets_at(const FlatOperands& a, const at::Tensor& offsets, int64_t sweep) {
  std::vector<Turns> result;
  if (!offsets.defined()) return result;
  const int64_t pairs = a.pairs.size(1);
  for (int64_t f = sweep * pairs; f < (sweep + 1) * pairs; ++f)
    if (a.pairs.data_ptr<int64_t>()[f * 3] != -1)
      result.push_back(turns_at(offsets.data_ptr<int64_t>() + f * 2));
  return result;
}

std::vector<Rotation> rotations_of_frames(const FlatOperands& a, int64_t sweep,
                                          const Rotation& like) {
  if (!a.frame_frequencies.defined() || like.pairs.empty()) return {};
  std::vector<Rotation> all(static_cast<size_t>(a.frames.size(0)), like);
  const int64_t pairs = a.pairs.size(1);
  const int64_t* columns = a.pairs.data_ptr<int64_t>() + sweep * pairs * 3;
  for (size_t n = 0; n < all.size(); ++n) {
    const int64_t frame = sweep * a.frames.size(0) + static_cast<int64_t>(n);
    const int64_t* frequencies = a.frame_frequencies.data_ptr<int64_t>() + frame * pairs * 2;
    size_t at = 0;
    for (int64_t f = 0; f < pairs; ++f)
      if (columns[f * 3] != -1) all[n].pairs[at++].frequency = turns_at(frequencies + f * 2);
    all[n].gain = a.frame_gains.data_ptr<double>()[frame];
  }
  return all;
}

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

std::string arguments_schema() {
  std::string operands;
  each_operand([&](auto operand) {
    const std::string tensor = ", Tensor? " + std::string(operand.name);
    if (operand.presence == Presence::kOptional) operands += tensor + "=None";
    if (operand.has(Axis::kRows)) operands += tensor + "_rows=None";
  });
  return "Tensor q, Tensor k, Tensor v, float scale, Tensor frames, Tensor key_ranges, *, "
         "Tensor? pairs=None, Tensor? frequencies=None, Tensor? growth=None, Tensor? gains=None, "
         "Tensor? query_rotary_positions=None, Tensor? key_rotary_positions=None, "
         "Tensor? query_offsets=None, Tensor? key_offsets=None, "
         "Tensor? frame_frequencies=None, Tensor? frame_gains=None, int farthest=0" +
         operands +
         ", Tensor? pages=None, int key_rows=0, float softcap=0, float dropout_p=0, "
         "Tensor? dropout_seed=None, int dropout_first_query=0, bool whole_lse=False, "
         "Tensor[]? int8_pages=None, Tensor[]? axes=None";
}

void push(torch::jit::Stack& stack, const FlatOperands& arguments) {
  each_argument(arguments, Push{stack});
}

FlatOperands pop_arguments(torch::jit::Stack& stack) {
  FlatOperands arguments;
  std::ptrdiff_t count = 0;
  each_argument(arguments, [&](const auto&) { ++count; });
  each_argument(arguments, Read{stack.end() - count});
  stack.resize(stack.size() - static_cast<size_t>(count));
  return arguments;
}

std::vector<SweepOperand> sweeps_of(const FlatOperands& arguments) {
  FlatOperands a = arguments;
  for (at::Tensor* x : {&a.pairs, &a.frequencies, &a.growth, &a.gains, &a.query_offsets,
                        &a.key_offsets, &a.frame_frequencies, &a.frame_gains})
    if (x->defined()) *x = x->contiguous();
  std::vector<SweepOperand> sweeps(static_cast<size_t>(a.key_ranges.size(0)));
  for (size_t n = 0; n < sweeps.size(); ++n) {
    SweepOperand& sweep = sweeps[n];
    const auto at = static_cast<int64_t>(n);
    sweep.key_ranges = a.key_ranges.select(0, at);
    if (!a.pairs.defined()) continue;
    sweep.rotation = rotation_at(a, at);
    sweep.of_frames = rotations_of_frames(a, at, sweep.rotation);
    for (const auto& [to, from] :
         {std::pair{&sweep.query_rotary_positions, &a.query_rotary_positions},
          {&sweep.key_rotary_positions, &a.key_rotary_positions}})
      if (from->defined()) *to = from->select(0, at);
    sweep.query_offset = offsets_at(a, a.query_offsets, at);
    sweep.key_offset = offsets_at(a, a.key_offsets, at);
  }
  return sweeps;
}

void check_arguments(const FlatOperands& a) {
  check_data(a);
  check_tensor("frames", a.frames, at::kLong, {{}, 7});
  check_tensor("key_ranges", a.key_ranges, at::kLong,
               {{}, {Size::kOneOr, a.q.sym_size(0)}, {Size::kExactly, a.q.sym_size(2)}, 2});
  for (const auto& [name, x, type, sizes, needed] : rotation_tensors(a)) {
    if (!a.pairs.defined() && x->defined()) refuse(name, "none, as there are no pairs", "a tensor");
    if (a.pairs.defined() && needed && !x->defined())
      refuse(name, "a tensor, as there are pairs", "none");
    check_tensor(name, *x, type, sizes);
    check_on_cpu(name, *x, /*meta=*/true);
  }
  if (a.frame_gains.defined() && !a.frame_frequencies.defined())
    refuse("frame_gains", "a tensor where there are frame_frequencies, and only there", "a tensor");
  for (const auto& [name, x] :
       {std::pair{"frames", &a.frames}, {"key_ranges", &a.key_ranges}, {"pages", &a.pages}})
    check_on_cpu(name, *x, /*meta=*/true);
}

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
