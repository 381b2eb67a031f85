// The operands of the score equation (sextant/attention/score.h) as tensors.
//
// Methods change this struct, and attend() computes the result. It is differentiable in q, k, v,
// q_imag, the tables, the biases and the sink, which are on one device, CPU or CUDA, with the mask.
// Index tensors (frames, key ranges, rotary positions, row maps, pages) are on the CPU and have no
// gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <tuple>
#include <vector>

#include "sextant/position/frame.h"
#include "sextant/position/spectrum.h"

namespace sextant {

class PlanCache;

// w, b, A, B or C: a table with rows by distance. Undefined rows: the term is absent.
struct TableOperand {
  at::Tensor rows = {};    // [1 or heads, R, columns]; weight, bias: [1 or heads, R]
  at::Tensor row_at = {};  // int32 [diagonals], diagonal -> row; undefined: row = diagonal
};

// Dropout of attention weights (sextant/attention/dropout.h).
struct DropoutOperand {
  double p = 0;             // in [0, 1); 0: no dropout
  at::Tensor seed = {};     // int64 [1], if p > 0
  int64_t first_query = 0;  // added to query rows: the call has a part of the queries
};

struct SweepOperand {
  at::Tensor key_ranges = {};  // int64 [1 or batch, queries, 2]: key rows [first, last)
  Rotation rotation = {};      // no pairs: q and k are not rotated
  // A rotation for each frame, with the pairs of `rotation` but other frequencies and gains; or
  // empty.
  std::vector<Rotation> of_frames = {};
  // int64 [1 or batch, axes, rows]; undefined: the positions of the frames
  at::Tensor query_rotary_positions = {}, key_rotary_positions = {};
  std::vector<Turns> query_offset = {}, key_offset = {};  // [pairs] or empty
};

// A block of consecutive query rows.
struct QueryBlock {
  int64_t first = 0;                    // query row
  std::vector<int64_t> positions = {};  // of each row; for each entry in turn if entries differ
};

// A TensorOperands::query_bias that would need queries x keys elements as a whole: attend()
// evaluates it for a block of queries at a time, and again for gradients.
struct LazyQueryBias {
  std::vector<at::Tensor> inputs = {};  // the arguments of `rows`, to which gradients flow
  // [1 or heads, positions, diagonals], or [batch, heads, queries, diagonals]: a differentiable
  // function of the inputs. Empty: none.
  std::function<at::Tensor(const std::vector<at::Tensor>& inputs, const QueryBlock& queries,
                           const Diagonals& diagonals)>
      rows = {};
  Diagonals diagonals = {};  // of all visible distances
  // Queries at lower positions use TensorOperands::bias, which has the values of `rows` for them.
  int64_t from = 0;
  int64_t at_once = 0;  // queries of a block; 0: a number chosen for speed and memory
};

// An axis of positions beside those of the frames (sextant/attention/plan.h).
struct AxisOperand {
  at::Tensor query_positions = {}, key_positions = {};  // int64 [1 or batch, rows]
  int64_t farthest = 0;                                 // the distance of entry 0 of the maps
  // int32 [distances]: the row of axis_bias and of axis_on_query, or -1; undefined: the axis has no
  // rows of that table.
  at::Tensor bias_rows = {}, on_query_rows = {};
};

// The operands of the equation (sextant/attention/operand_list.h). Undefined: absent.
struct OperandTensors {
  at::Tensor q = {}, k = {}, v = {};  // [batch, heads, rows, columns]
  at::Tensor q_imag = {};             // of the shape of q
  TableOperand weight = {}, bias = {}, on_query = {}, on_key = {}, on_value = {};
  at::Tensor axis_bias = {};      // [1 or heads, R]: rows of all axes
  at::Tensor axis_on_query = {};  // [1 or heads, R, columns]
  at::Tensor table_query = {};    // r: [batch, heads, queries, columns of A]
  at::Tensor sink = {};           // [heads]
  at::Tensor query_sink = {};     // [batch, heads, queries]
  at::Tensor query_bias = {};     // [1 or batch, 1 or heads, queries, diagonals]
  // float64 [1 or batch, 1 or heads, keys]. Sums over thousands of keys belong here: their
  // differences are computed in float64, and rounded when they are added to scores.
  at::Tensor key_bias = {};
  at::Tensor mask = {};  // bool [batch, heads, queries, keys]; sizes of 1 are shared
};

// The data of a call: its operands without frames, sweeps and what follows from operands.
struct TensorData : OperandTensors {
  double scale = 1;
  int64_t farthest = 0;  // the distance of diagonal 0
  double softcap = 0;    // the limit of tau (sextant/attention/score.h), above 0; 0: none
  DropoutOperand dropout = {};
  // int64 [1 or batch, pages of an entry], or undefined. k and v are then [pages, heads, page rows,
  // columns], and the `key_rows` keys of an entry are in its pages.
  at::Tensor pages = {};
  int64_t key_rows = 0;
  // Pages of k and v that are integers (Int8Pages in sextant/attention/score.h), to which page
  // numbers below 0 refer: the integers and scales of k, then those of v; or empty.
  std::vector<at::Tensor> int8_pages = {};
  // The axes of positions, kAxisTensors for each (tensor_data.h): see add_axis().
  std::vector<at::Tensor> axes = {};
  // Whether lse includes the largest key_bias that the query sees, and the query_shift. If so, it
  // is differentiable beside a key_bias.
  bool whole_lse = false;
};

struct TensorOperands : TensorData {
  bool scale_is_given = false;  // by the caller: methods keep it, see use_scale()
  at::Tensor frames = {};       // int64 [frames, 7]: the fields of sextant::Frame in their order
  std::vector<SweepOperand> sweeps = {};
  LazyQueryBias lazy_query_bias = {};
  // float64 [batch, heads, queries], or undefined: a term of all scores of a query. It cancels in
  // softmax, so that methods may leave it out of the other operands, but not beside a sink, nor in
  // lse. Not beside a lazy_query_bias.
  at::Tensor query_shift = {};
  // The cache in which attend() looks up and keeps the plan of frames, sweeps, row maps and pages;
  // null: it makes a plan for this call.
  std::shared_ptr<PlanCache> plans = {};
};

// Adds an axis. Its tensors are checked with the other operands.
void add_axis(TensorData& data, const AxisOperand& axis);

// Sets the scale of a method that does not divide by sqrt(head_dim), unless the caller gave one.
inline void use_scale(TensorOperands& operands, double scale) {
  if (!operands.scale_is_given) operands.scale = scale;
}

// (out [batch, heads, queries, Dv], lse [batch, heads, queries]), differentiable. With a key_bias
// and without whole_lse, lse is relative to the largest bias that a query sees, and a gradient of
// lse is an error.
std::tuple<at::Tensor, at::Tensor> attend(const TensorOperands& operands);

}  // namespace sextant
