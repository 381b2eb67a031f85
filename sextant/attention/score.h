// The score equation: everything that a position encoding can do to attention is a choice of
// operands in it. d is the distance, query position minus key position, positive for keys in the
// past. A, B, C, w and b are members of Operands (below); R is the rotation of a sweep (plan.h).
//
//   p = <R q, R k> + q.A[d] + k.B[d]          (or |p + i p'| with q_imag)
//   s = tau(scale w[d] p) + b[d] + r.A[d] + beta_i[d] + c_j
//   o = sum_j e^s m_ij (v + C[d]) / (e^sink + sum_j e^s)
//
// Rows may have positions on further axes (Plan::axes): those of a grid, or of boxes on a page. d
// is then a list of distances, one for each axis, and A[d] and b[d] are sums over the axes of rows
// of A and b, which the distance on each axis chooses; w, B, C and beta know the first distance
// alone. A meets q inside p; with an operand r it meets r_i instead, unscaled and outside of p.
//
// tau(x) = x, or softcap tanh(x / softcap) if there is a softcap: Gemma 2 (2024) limits q k^T so,
// and transformers, flash-attention and ggml add masks and ALiBi's biases after it, as here b, beta
// and c (modeling_gemma2.py: eager_attention_forward; flash_fwd_kernel.h: apply_softcap before
// apply_mask, which adds the slopes). m_ij = 1, or the factor of dropout (dropout.h).
//
// A method chooses operands and a plan; no kernel knows any method. Two operands alone have a size
// of queries x keys: `mask`, for permutation language models and irregular padding, and
// `query_bias` (beta), for biases that depend on the query's own position or content. Callers with
// such biases pass the queries in blocks.
//
// T is float or double, and everything is computed in T or better. q, k, v, q_imag, out,
// d_out and gradients may each be stored as bfloat16 or float16 (AnyView). Views do not own memory;
// a shared dimension has stride 0.
#pragma once

#include <cstdint>
#include <span>

#include "sextant/attention/dropout.h"
#include "sextant/attention/plan.h"
#include "sextant/base/view.h"

namespace sextant {

// Pages of keys or values as 8-bit integers, beside those of k or v; Pages (plan.h) tells which
// page has which rows. Element = integer x scale, rounded to T.
template <class T>
struct Int8Pages {
  View<const int8_t> numbers = {};  // [pages, key heads, page rows, columns], columns adjacent
  // [pages, key heads, 1 or page rows, 1 or columns]: one for each column, each row or each element
  View<const T> scale = {};

  explicit operator bool() const { return static_cast<bool>(numbers); }
};

// The data of a call, in the memory of the backend's device. The rows of tables (weight to
// on_value) are those that Plan::row_at refers to.
template <class T>
struct Operands {
  AnyView<const T> q = {};  // [batch, query heads, queries, D], as the method changed it
  // [batch, key heads, keys, D]; query head h reads key head h / (query/key heads)
  AnyView<const T> k = {};
  AnyView<const T> v = {};                // [batch, key heads, keys, Dv]
  Int8Pages<T> k_int8 = {}, v_int8 = {};  // both or neither, and only with pages
  AnyView<const T> q_imag = {};           // q', of the shape of q; or null
  double scale = 1;
  View<const T> weight = {}, bias = {};      // w, b: [1, 1 or heads, R, 1]
  View<const T> on_query = {}, on_key = {};  // A, B: [1, 1 or heads, R, columns <= D], multiplied
                                             // with the first columns of q and k
  View<const T> on_value = {};               // C: [1, 1 or heads, R, Dv]
  // The rows of b and A of the axes of a plan, those of all axes in one table each.
  View<const T> axis_bias = {};      // [1, 1 or heads, R, 1]
  View<const T> axis_on_query = {};  // [1, 1 or heads, R, columns]
  // r: [batch, query heads, queries, columns of A], or null. With it, on_query and axis_on_query,
  // of which there must be one, are multiplied with r instead of q.
  View<const T> table_query = {};
  View<const T> query_bias = {};  // beta: [batch, query heads, queries, diagonals]
  // c: [batch, query heads, key rows, 1], or null. Its values may be sums over thousands of keys,
  // of which only differences matter. Therefore it is double, and kernels subtract the largest one
  // that the query sees (key_bias.h).
  View<const double> key_bias = {};
  std::span<const T> sink = {};  // one more score per query head, in the denominator only; or empty
  // The same for each query: [batch, query heads, queries, 1], or null. Not beside `sink`.
  View<const T> query_sink = {};
  View<const uint8_t> mask = {};  // [batch, heads, queries, keys], 0 = hidden; or null
  double softcap = 0;             // the limit of tau, above 0; 0: none
  Dropout dropout = {};
};

// Operands and plan in one value, for callers that use a plan once.
template <class T>
struct Score : Operands<T>, Plan {};

// The results of a forward pass. A query that sees no key (and no sink) gives zeros and lse =
// -infinity. With a key_bias, lse is relative to the largest that the query sees (key_bias.h).
template <class T>
struct Attended {
  AnyView<T> out;  // [batch, query heads, queries, Dv]
  // [batch, query heads, queries, 1]: log of the sum of exp(s_ij), sink included, dropout ignored
  View<T> lse;
};

// Gradients, each of the shape of its operand; a null view is not computed. The backward pass
// overwrites them. The gradient of an operand that heads, batch entries or distances share is
// summed over these in T or better, and rounded once if it is stored in 16 bits.
template <class T>
struct ScoreGrad {
  AnyView<T> q = {}, k = {}, v = {}, q_imag = {};
  AnyView<T> weight = {}, bias = {}, on_query = {}, on_key = {}, on_value = {};
  AnyView<T> axis_bias = {}, axis_on_query = {}, table_query = {}, query_sink = {};
  AnyView<T> query_bias = {};  // for each batch entry and head, even if its operand is shared
  AnyView<T> key_bias = {};    // likewise
  std::span<T> sink = {};
};

}  // namespace sextant
