// The pages of a cache are tensors over its memory. The sequences of a batch form one entry, one
// after the other, each with a frame of its own.
#include "sextant/torch/cached_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/device_cache.h"
#include "sextant/torch/operators/rotated_rows.h"
#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

std::vector<int64_t> sizes_of(const auto& view) {
  return {view.batch, view.heads, view.rows, view.columns};
}

// The cache's memory as a tensor, which is valid until the cache changes.
at::Tensor as_tensor(const AnyView<const float>& pages) {
  return at::from_blob(const_cast<void*>(pages.data),  // operands are never written
                       sizes_of(pages), scalar_type(pages.dtype));
}

std::vector<at::Tensor> int8_tensors(const KvCache& cache) {
  std::vector<at::Tensor> tensors;
  for (const Int8Pages<float>& pages : {cache.int8_key_pages(), cache.int8_value_pages()}) {
    if (!pages) continue;
    tensors.push_back(
        at::from_blob(const_cast<int8_t*>(pages.numbers.data), sizes_of(pages.numbers), at::kChar));
    tensors.push_back(as_tensor(pages.scale));
  }
  return tensors;
}

[[noreturn]] void refuse_rotated(int64_t sequence, const std::string& reason) {
  fail("kv cache: sequence " + std::to_string(sequence) + ": it has rotated keys: expected " +
       reason);
}

// Whether rows [row, row + count) of int64 [1, 1, rows] are at `position` and following ones.
bool are_consecutive(const at::Tensor& positions, int64_t row, int64_t count, int64_t position) {
  if (!positions.defined()) return true;  // those of the frames
  if (positions.size(0) != 1 || positions.size(1) != 1) return false;
  const auto at = positions.accessor<int64_t, 3>();
  for (int64_t n = 0; n < count; ++n)
    if (at[0][0][row + n] != position + n) return false;
  return true;
}

bool rotates(const TensorOperands& operands) {
  return std::ranges::any_of(
      operands.sweeps, [](const SweepOperand& sweep) { return !sweep.rotation.pairs.empty(); });
}

// The rotation by which every sweep rotates the queries and keys of the n-th sequence, each at its
// position; or null, if there is no such rotation.
const Rotation* only_rotation(const TensorOperands& operands, const Layout& layout, size_t n) {
  const Frame& frame = layout.cached[n];
  const Rotation* only = nullptr;
  for (const SweepOperand& sweep : operands.sweeps) {
    const Rotation& own = sweep.of_frames.empty() ? sweep.rotation : sweep.of_frames[n];
    if (own.pairs.empty() || !sweep.query_offset.empty() || !sweep.key_offset.empty() ||
        (only && !same_rotation(*only, own)) ||
        !are_consecutive(sweep.query_rotary_positions, frame.query_row, frame.queries,
                         frame.query_position) ||
        !are_consecutive(sweep.key_rotary_positions, frame.key_row, frame.keys, frame.key_position))
      return nullptr;
    only = &own;
  }
  return only;
}

// Where there are rotated keys, rotates the queries instead, so that no sweep rotates. Throws Error
// if that does not give the method's scores: the keys would have to be rotated again.
void rotate_queries_only(const KvCache& cache, std::span<const SequenceGrowth> sequences,
                         const Layout& layout, TensorOperands& operands) {
  const auto held = [&](const SequenceGrowth& one) {
    return cache.rotated_keys(one.sequence).has_value();
  };
  if (!rotates(operands) || std::ranges::none_of(sequences, held)) return;
  std::vector<at::Tensor> queries;
  for (size_t n = 0; n < sequences.size(); ++n) {
    const int64_t sequence = sequences[n].sequence;
    if (!held(sequences[n]))
      fail("kv cache: sequence " + std::to_string(sequence) +
           ": expected rotated keys, as those of the batch's other sequences");
    const Rotation* rotation = only_rotation(operands, layout, n);
    if (!rotation || operands.q_imag.defined())
      refuse_rotated(sequence, "a method that rotates queries and keys once, at their positions");
    if (!same_rotation(*rotation, *cache.rotated_keys(sequence)))
      refuse_rotated(sequence,
                     "a method that rotates by the same frequencies and gain at every length, but "
                     "they differ, so the keys would have to be rotated again");
    const Frame& frame = layout.cached[n];
    const at::Tensor positions =
        at::arange(frame.query_position, frame.query_position + frame.queries, at::kLong);
    queries.push_back(differentiably_rotated_rows(
        operands.q.narrow(2, frame.query_row, frame.queries).to(at::kFloat),
        positions.view({1, 1, -1}), *rotation));
  }
  operands.q = at::cat(queries, 2);
  for (SweepOperand& sweep : operands.sweeps) {
    sweep.rotation = {};
    sweep.of_frames.clear();
  }
}

}  // namespace

Layout continued(const KvCache& cache, std::span<const SequenceGrowth> sequences) {
  Layout layout = {.batch = 1};
  layout.cached.reserve(sequences.size());
  for (size_t n = 0; n < sequences.size(); ++n) {
    const int64_t sequence = sequences[n].sequence, rows = sequences[n].rows;
    const auto same = [&](const SequenceGrowth& other) { return other.sequence == sequence; };
    if (std::ranges::any_of(sequences.first(n), same))
      fail("kv cache: sequences: expected each once, but got " + std::to_string(sequence) +
           " twice");
    Frame frame = cached_frame(cache, sequence, cache.rows(sequence) + rows, rows);
    frame.query_row = layout.queries;
    frame.key_row = layout.keys;
    layout.cached.push_back(frame);
    layout.queries += rows;
    const int64_t page_rows = cache.shape().page_rows;
    layout.keys += (frame.keys + page_rows - 1) / page_rows * page_rows;
  }
  return layout;
}

std::vector<Rotation> rotations_for(const Method& method, const at::Tensor& q, const KvCache& cache,
                                    const Layout& layout, int64_t layer, Parameters parameters) {
  const std::string what = "kv cache: rotated_keys: ";
  if (method.changes_keys())
    fail(what + "expected a method that only rotates keys, but it changes them in other ways");
  const KvCacheShape& shape = cache.shape();
  const auto zeros = [&](int64_t columns) {
    return at::zeros({1, 1, 1, 1}).expand({1, shape.key_heads, layout.keys, columns});
  };
  const TensorOperands operands = applied(
      method, plain_operands(q, zeros(shape.key_columns), zeros(shape.value_columns), layout),
      layout, layer, parameters);
  if (!rotates(operands)) fail(what + "expected a method that rotates keys, but it rotates none");
  std::vector<Rotation> rotations;
  for (size_t n = 0; n < layout.cached.size(); ++n) {
    const Rotation* rotation = only_rotation(operands, layout, n);
    if (!rotation || operands.q_imag.defined())
      fail(what + "expected a method that rotates queries and keys once, at their positions");
    rotations.push_back(*rotation);
  }
  return rotations;
}

CachePages pages_of(const KvCache& cache, std::span<const SequenceGrowth> sequences) {
  int64_t count = 0;
  for (const SequenceGrowth& one : sequences) count += std::ssize(cache.pages(one.sequence));
  const at::Tensor table = at::empty({1, count}, at::kLong);
  int64_t* to = table.data_ptr<int64_t>();
  for (const SequenceGrowth& one : sequences)
    to = std::ranges::copy(cache.pages(one.sequence), to).out;
  if (const auto* const pages = dynamic_cast<const TensorPages*>(cache.store()))
    return {pages->keys(), pages->values(), table, {}};
  return {as_tensor(cache.key_pages()), as_tensor(cache.value_pages()), table, int8_tensors(cache)};
}

at::Tensor attend_cached(const Method& method, const at::Tensor& q, const KvCache& cache,
                         std::span<const SequenceGrowth> sequences, const Layout& layout,
                         int64_t layer, Parameters parameters, const CallTerms& terms,
                         bool must_rotate) {
  if (terms.key_bias.defined() || terms.dropout.p > 0)
    fail("kv cache: key_bias, dropout: expected none, but got one");
  if (layout.queries == 0)
    return at::zeros({1, q.size(1), 0, cache.shape().value_columns}, q.options());
  CachePages pages = pages_of(cache, sequences);
  at::Tensor k = pages.keys, v = pages.values;
  const bool copied = method.changes_keys();
  for (const SequenceGrowth& one : sequences)
    if (copied && cache.rotated_keys(one.sequence))
      refuse_rotated(one.sequence, "a method that does not change keys in other ways");
  if (copied) {
    k = gathered({k, pages.int8, true}, pages.table, layout.keys);
    v = gathered({v, pages.int8, false}, pages.table, layout.keys);
  }
  TensorOperands operands = plain_operands(q, k, v, layout);
  if (!copied) {
    operands.pages = pages.table;
    operands.key_rows = layout.keys;
    operands.int8_pages = std::move(pages.int8);
  }
  operands = applied(method, std::move(operands), layout, layer, parameters, terms);
  if (must_rotate && !rotates(operands))
    fail(
        "kv cache: rotated_keys: expected a method that rotates keys, as the cache has rotated "
        "ones, but it rotates none");
  rotate_queries_only(cache, sequences, layout, operands);
  return std::get<0>(attend(operands)).to(q.scalar_type());
}

}  // namespace sextant
