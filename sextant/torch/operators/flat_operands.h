// The operands of the score equation as the flat list of arguments of a libtorch operator: tensors
// and scalars only, so that Python can call torch.ops.sextant.attend and tracers can record it. The
// arguments of sweeps (operands.h has one struct for each) are stacked along a first dimension S.
//
//   scale, farthest, softcap, whole_lse, pages, key_rows, int8_pages, axes and operands: as members
//                           of TensorOperands; the row map of a table has the name of the table
//                           and "_rows"
//   frames                  int64 [frames, 7]: the fields of sextant::Frame in their order
//   key_ranges              int64 [S, 1 or batch, queries, 2]: key rows [first, last)
//   pairs                   int64 [S, P, 3], or none: first column, second column, axis. A sweep
//                           with fewer pairs is padded with first = -1. Pairs need
//                           frequencies.
//   frequencies             int64 [S, P, 2], or none: the high and low 64 bits of sextant::Turns
//   growth                  float64 [S, P], or none: natural log per position
//   gains                   float64 [S], or none
//   frame_frequencies       int64 [S, frames, P, 2], or none: of each frame, if they differ
//   frame_gains             float64 [S, frames]: if and only if there are frame_frequencies
//   query_rotary_positions  int64 [S, 1 or batch, axes, queries], or none: those of the frames
//   key_rotary_positions    int64 [S, 1 or batch, axes, keys], or none: those of the frames
//   query_offsets           int64 [S, P, 2], or none: sextant::Turns that are added to the phase
//   key_offsets             likewise
//   dropout_p, dropout_seed, dropout_first_query: the members of DropoutOperand
//
// Operands (but key_bias and mask) may each be float32, bfloat16 or float16, and all is computed in
// float32; or all of them are float64. `out` has the type of q, `lse` the type of the computation,
// and gradients have the types of their operands. They are on the device of q, CPU or CUDA, where
// float64 is for the CPU only. The other arguments are on the CPU: they are the plan of a call.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <string>
#include <vector>

#include "sextant/torch/operands.h"
#include "sextant/torch/operators/tensor_data.h"

namespace sextant {

// The arguments as the text of a schema.
std::string arguments_schema();

// Absent tensors are undefined.
struct FlatOperands : TensorData {
  at::Tensor frames, key_ranges;
  at::Tensor pairs, frequencies, growth, gains;
  at::Tensor query_rotary_positions, key_rotary_positions, query_offsets, key_offsets;
  at::Tensor frame_frequencies, frame_gains;
};

// Append the arguments to a stack in the order of the schema, and remove them from its end.
void push(torch::jit::Stack& stack, const FlatOperands& arguments);
FlatOperands pop_arguments(torch::jit::Stack& stack);

// The arguments of operands without a lazy query bias. Throws Error that names the field if sweeps
// do not fit together.
FlatOperands flat_of(const TensorOperands& operands);

// The sweeps of arguments in CPU memory that check_arguments() has accepted.
std::vector<SweepOperand> sweeps_of(const FlatOperands& arguments);

// Throws Error that names an argument whose type, device or shape is not as listed above. Meta
// tensors and symbolic sizes are supported.
void check_arguments(const FlatOperands& arguments);

}  // namespace sextant
