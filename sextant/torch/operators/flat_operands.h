// The operands of the score equation as the flat list of arguments that a libtorch operator takes:
// tensors, numbers and nothing else, so that torch.ops.sextant.attend can be called from Python and
// traced. What is one struct per sweep in operands.h is stacked here along a first dimension S.
//
//   q, k, v          [batch, heads, rows, columns], any strides
//   q_imag           of the shape of q, or none
//   frames           int64 [frames, 7]                  the fields of sextant::Frame in their order
//   runs             int64 [S, 1 or batch, queries, 2]  key rows [first, last)
//   pairs            int64 [S, P, 3]                    first column, second column, axis of times;
//                                                       first = -1 fills up a sweep with fewer
//                                                       pairs
//   speeds           int64 [S, P, 2]                    the high and low 64 bits of sextant::Turns
//   growth           float64 [S, P], or none            natural log per position
//   gains            float64 [S], or none
//   frame_speeds     int64 [S, frames, P, 2], or none   in place of speeds, for each frame its own
//   frame_gains      float64 [S, frames], or none       goes with frame_speeds
//   query_rotary_positions      int64 [S, 1 or batch, axes, queries]; key_rotary_positions
//   likewise, with keys query_offsets    int64 [S, P, 2], or none           turns added to the
//   phase; key_offsets too farthest         the distance of diagonal 0 weight, bias     [1 or
//   heads, R]; on_query, on_key, on_value [1 or heads, R, columns];
//   *_rows           int32 [diagonals], or none         diagonal -> row of that table
//   query_bias       [1 or batch, 1 or heads, queries, diagonals], or none
//   key_bias         float64 [1 or batch, 1 or heads, keys], or none
//   sink             [heads]
//   mask             bool [batch, heads, queries, keys], sizes of 1 are shared
//   pages            int64 [1 or batch, pages of an entry], or none: k and v are then [pages,
//   heads, page rows,
//                    columns], in which an entry's keys lie (sextant/attention/score.h); key_rows:
//                    how many
//
// q, k, v, q_imag, tables, query_bias and sink are float32, bfloat16 or float16, each for itself,
// and all is computed in float32; or all of them are float64. `out` has the type of q, `lse` the
// one that is computed in, and gradients have the types of their operands. They all have the device
// of q; all others but the mask live on the CPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <array>

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
    "Tensor? pages=None, int key_rows=0, Tensor? query_bias=None, Tensor? key_bias=None";

// The differentiable arguments, in the order in which gradients are listed everywhere:
// q, k, v, q_imag, weight, bias, on_query, on_key, on_value, sink, query_bias, key_bias.
inline constexpr size_t kDifferentiable = 12, kQueryBias = 10, kKeyBias = 11;
using Gradients = std::array<at::Tensor, kDifferentiable>;
using Wanted = std::array<bool, kDifferentiable>;

// Absent tensors are undefined.
struct FlatOperands {
  at::Tensor q, k, v;
  double scale = 1;
  at::Tensor frames, key_ranges;
  at::Tensor pairs, speeds, growth, gains;
  at::Tensor query_rotary_positions, key_rotary_positions, query_offsets, key_offsets;
  at::Tensor frame_speeds, frame_gains;
  int64_t farthest = 0;
  at::Tensor q_imag, weight, weight_rows;
  at::Tensor bias, bias_rows, on_query, on_query_rows;
  at::Tensor on_key, on_key_rows, on_value, on_value_rows;
  at::Tensor sink, mask;
  at::Tensor pages;
  int64_t key_rows = 0;  // of pages
  at::Tensor query_bias, key_bias;

  std::array<at::Tensor*, kDifferentiable> differentiable() {
    return {&q,        &k,      &v,        &q_imag, &weight,     &bias,
            &on_query, &on_key, &on_value, &sink,   &query_bias, &key_bias};
  }
};

// Appends the arguments to a stack in the order of the schema, and takes them off its end.
void push(torch::jit::Stack& stack, const FlatOperands& arguments);
FlatOperands pop_arguments(torch::jit::Stack& stack);

// x [pages, heads, page rows, columns] -> the first `rows` rows of each entry of `pages`, [1 or
// batch, heads, rows, columns]. Differentiable.
at::Tensor gathered(const at::Tensor& x, const at::Tensor& pages, int64_t rows);

// The same attention over keys and values that are gathered from their pages, differentiably:
// gradients go back into the pages, those of a shared page summed. Costs a copy of what is seen.
FlatOperands without_pages(FlatOperands arguments);

// Throws Error that names the argument whose type, device or shape is not the one above. Works on
// meta tensors and on symbolic sizes; whether contents fit together is check_score()'s to say.
void check_arguments(const FlatOperands& arguments);
void check_results(const FlatOperands& arguments, const at::Tensor& d_out, const at::Tensor& out,
                   const at::Tensor& lse);

}  // namespace sextant
