// The operands of the score equation as the flat list of arguments of a libtorch operator: tensors
// and scalars only, so that Python can call torch.ops.sextant.attend and tracers can record it. The
// arguments of sweeps (operands.h has one struct for each) are stacked along a first dimension S.
//
//   q, k, v                 [batch, heads, rows, columns], any strides
//   q_imag                  of the shape of q, or none
//   frames                  int64 [frames, 7]: the fields of sextant::Frame in their order
//   key_ranges              int64 [S, 1 or batch, queries, 2]: key rows [first, last)
//   pairs                   int64 [S, P, 3], or none: first column, second column, axis. A sweep
//                           with fewer pairs is padded with first = -1. Pairs need
//                           speeds, query_rotary_positions and key_rotary_positions.
//   speeds                  int64 [S, P, 2], or none: the high and low 64 bits of sextant::Turns
//   growth                  float64 [S, P], or none: natural log per position
//   gains                   float64 [S], or none
//   frame_speeds            int64 [S, frames, P, 2], or none: speeds of each frame, if they differ
//   frame_gains             float64 [S, frames]: if and only if there are frame_speeds
//   query_rotary_positions  int64 [S, 1 or batch, axes, queries], or none
//   key_rotary_positions    int64 [S, 1 or batch, axes, keys], or none
//   query_offsets           int64 [S, P, 2], or none: sextant::Turns that are added to the phase
//   key_offsets             likewise
//   farthest                the distance of diagonal 0
//   weight, bias            [1 or heads, R], or none
//   on_query, on_key        [1 or heads, R, columns], or none
//   on_value                [1 or heads, R, columns of v], or none
//   weight_rows and so on   int32 [diagonals], or none: diagonal -> row of that table
//   query_bias              [1 or batch, 1 or heads, queries, diagonals], or none
//   key_bias                float64 [1 or batch, 1 or heads, keys], or none
//   sink                    [heads], or none
//   mask                    bool [batch, heads, queries, keys], or none; sizes of 1 are shared
//   pages                   int64 [1 or batch, pages of an entry], or none: the pages with the keys
//                           of each entry (sextant/attention/plan.h). k and v are then
//                           [pages, heads, page rows, columns].
//   key_rows                the number of keys of an entry; 0 without pages
//   int8_pages              four tensors, or none: int8 [pages, heads, page rows, columns] of k,
//                           scales [pages, heads, 1 or page rows, 1 or columns] in the type of the
//                           computation, and the same of v. Page -1 - n is the n-th of these.
//   softcap                 the limit of tau, above 0 (sextant/attention/score.h); 0: none
//   dropout_p               in [0, 1); 0: no dropout of attention weights
//   dropout_seed            int64 [1] on the CPU, needed for a dropout_p above 0
//   dropout_first_query     the row of the first query, as dropout counts them
//   whole_lse               whether the caller adds the largest key_bias that a query sees to lse,
//                           which is relative to it; without, a gradient of lse beside a key_bias
//                           is an error
//
// q, k, v, q_imag, tables, query_bias and sink may each be float32, bfloat16 or float16, and all is
// computed in float32; or all of them are float64. `out` has the type of q, `lse` the type of the
// computation, and gradients have the types of their operands. They, key_bias and the mask are on
// the device of q, CPU or CUDA, where float64 is for the CPU only. The other arguments are on the
// CPU: they are the plan of a call.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <vector>

#include "sextant/torch/operands.h"
#include "sextant/torch/operators/tensor_data.h"

namespace sextant {

inline constexpr const char* kArgumentsSchema =
    "Tensor q, Tensor k, Tensor v, float scale, Tensor frames, Tensor key_ranges, *, "
    "Tensor? pairs=None, Tensor? speeds=None, Tensor? growth=None, Tensor? gains=None, "
    "Tensor? query_rotary_positions=None, Tensor? key_rotary_positions=None, "
    "Tensor? query_offsets=None, Tensor? key_offsets=None, "
    "Tensor? frame_speeds=None, Tensor? frame_gains=None, int farthest=0, "
    "Tensor? q_imag=None, Tensor? weight=None, Tensor? weight_rows=None, "
    "Tensor? bias=None, Tensor? bias_rows=None, "
    "Tensor? on_query=None, Tensor? on_query_rows=None, "
    "Tensor? on_key=None, Tensor? on_key_rows=None, "
    "Tensor? on_value=None, Tensor? on_value_rows=None, Tensor? sink=None, Tensor? mask=None, "
    "Tensor? pages=None, int key_rows=0, Tensor? query_bias=None, Tensor? key_bias=None, "
    "float softcap=0, float dropout_p=0, Tensor? dropout_seed=None, int dropout_first_query=0, "
    "bool whole_lse=False, Tensor[]? int8_pages=None";

// Absent tensors are undefined.
struct FlatOperands : TensorData {
  at::Tensor frames, key_ranges;
  at::Tensor pairs, speeds, growth, gains;
  at::Tensor query_rotary_positions, key_rotary_positions, query_offsets, key_offsets;
  at::Tensor frame_speeds, frame_gains;
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
