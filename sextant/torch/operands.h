// The operands of the score equation (sextant/attention/score.h) as tensors.
//
// Methods fill this struct; attend() hands it to the operator sextant::attend, which knows its
// gradients for q, k, v, the tables and the sink. Index tensors (frames, runs, times, maps) live
// on the CPU and are never differentiated.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <tuple>
#include <vector>

#include "sextant/position/frame.h"
#include "sextant/position/spectrum.h"

namespace sextant {

// w, b, A, B or C: rows by distance. Undefined rows: the term is absent.
struct TableOperand {
  at::Tensor rows = {};    // [1 or heads, R, columns]; weight, bias: [1 or heads, R]
  at::Tensor row_at = {};  // int32 [diagonals], diagonal -> row; undefined: row = diagonal
};

struct SweepOperand {
  at::Tensor key_ranges = {};  // int64 [1 or batch, queries, 2]: key rows [first, last)
  Rotation rotation = {};      // no pairs: q and k as they are
  // One for each frame, with the pairs of `rotation` at speeds and gains of their own; or empty.
  std::vector<Rotation> of_frames = {};
  at::Tensor query_rotary_positions = {},
             key_rotary_positions = {};                   // int64 [1 or batch, axes, rows]
  std::vector<Turns> query_offset = {}, key_offset = {};  // [pairs] or empty
};

// A block of consecutive query rows.
struct QueryBlock {
  int64_t first = 0;                    // query row
  std::vector<int64_t> positions = {};  // of each row; entry by entry, if these differ by entry
};

// Operands::query_bias where all of it would be queries x keys numbers: attend() evaluates it for a
// block of queries at a time, and once more for gradients.
struct LazyQueryBias {
  std::vector<at::Tensor> inputs = {};  // what they are made of, and where gradients go
  // [1 or heads, positions, diagonals], or [batch, heads, queries, diagonals]: a differentiable
  // function of the inputs. Empty: none.
  std::function<at::Tensor(const std::vector<at::Tensor>& inputs, const QueryBlock& queries,
                           const Diagonals& diagonals)>
      rows = {};
  Diagonals diagonals = {};  // the distances there are
  // Queries at lower positions go by Operands::bias, which gives them what `rows` would.
  int64_t from = 0;
  int64_t at_once = 0;  // for how many queries attend() asks; 0: what is good for speed and memory
};

struct Operands {
  at::Tensor q = {}, k = {}, v = {};  // [batch, heads, rows, columns]
  at::Tensor q_imag = {};             // of the shape of q, or undefined
  double scale = 1;
  at::Tensor frames = {};  // int64 [frames, 7]: the fields of sextant::Frame in their order
  std::vector<SweepOperand> sweeps = {};
  int64_t farthest = 0;  // the distance of diagonal 0
  TableOperand weight = {}, bias = {}, on_query = {}, on_key = {}, on_value = {};
  at::Tensor query_bias = {};  // [1 or batch, 1 or heads, queries, diagonals], or undefined
  LazyQueryBias lazy_query_bias = {};
  // float64 [1 or batch, 1 or heads, keys], or undefined: a number per key and head. Sums over
  // thousands of keys belong here: their differences reach the scores before they are rounded.
  at::Tensor key_bias = {};
  at::Tensor sink = {};  // [heads], or undefined
  at::Tensor mask = {};  // bool [batch, heads, queries, keys] (sizes of 1 are shared), or undefined
  // int64 [1 or batch, pages of an entry], or undefined. k and v are then [pages, heads, page rows,
  // columns] and an entry's `key_rows` keys lie in the pages that it names.
  at::Tensor pages = {};
  int64_t key_rows = 0;
};

// (out [batch, heads, queries, Dv], lse [batch, heads, queries]), differentiable. With a key_bias,
// lse is less by the bias of the query's last key, and a gradient of lse is an error.
std::tuple<at::Tensor, at::Tensor> attend(const Operands& operands);

}  // namespace sextant
