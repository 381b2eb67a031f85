#include "sextant/torch/cached_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

int64_t pages_of(const KvCache& cache, int64_t rows) {
  const int64_t page_rows = cache.shape().page_rows;
  return (rows + page_rows - 1) / page_rows;
}

// The pages of all sequences in order, int64 [1, pages].
at::Tensor page_table(const KvCache& cache, std::span<const SequenceGrowth> sequences,
                      int64_t count) {
  at::Tensor table = at::empty({1, count}, at::kLong);
  int64_t* to = table.data_ptr<int64_t>();
  for (const SequenceGrowth& sequence : sequences)
    to = std::ranges::copy(cache.pages(sequence.sequence), to).out;
  return table;
}

// The cache's memory as a tensor, which is valid until the cache changes.
at::Tensor as_tensor(const AnyView<const float>& pages) {
  return at::from_blob(const_cast<void*>(pages.data),  // operands are never written
                       {pages.batch, pages.heads, pages.rows, pages.columns},
                       scalar_type(pages.dtype));
}

void check_plain(const KvCache& cache, std::span<const SequenceGrowth> sequences,
                 const TensorOperands& operands) {
  const bool turns = std::ranges::any_of(
      operands.sweeps, [](const SweepOperand& sweep) { return !sweep.rotation.pairs.empty(); });
  for (const SequenceGrowth& sequence : sequences)
    if (turns && cache.rotated_by(sequence.sequence))
      fail("kv cache: sequence " + std::to_string(sequence.sequence) +
           ": expected plain keys, as the method turns them, but they are held rotated (turn the "
           "queries, and use a method that does not)");
}

}  // namespace

Layout continued(const KvCache& cache, std::span<const SequenceGrowth> sequences) {
  Layout layout = {.batch = 1};
  std::set<int64_t> seen;
  int64_t pages = 0;
  for (const auto& [sequence, rows] : sequences) {
    if (!seen.insert(sequence).second)
      fail("kv cache: sequences: expected each once, but got " + std::to_string(sequence) +
           " twice");
    const int64_t before = cache.rows(sequence), first = cache.first_position(sequence);
    layout.cached.push_back({.query_row = layout.queries,
                             .queries = rows,
                             .query_position = first + before,
                             .key_row = pages * cache.shape().page_rows,
                             .keys = before + rows,
                             .key_position = first});
    layout.queries += rows;
    pages += pages_of(cache, before + rows);
  }
  layout.keys = pages * cache.shape().page_rows;
  return layout;
}

void shrink(KvCache& cache, std::span<const SequenceGrowth> sequences, const Layout& layout) {
  for (size_t n = 0; n < sequences.size(); ++n)
    cache.truncate(sequences[n].sequence, layout.cached[n].keys - sequences[n].rows);
}

at::Tensor attend_cached(const Method& method, const at::Tensor& q, const KvCache& cache,
                         std::span<const SequenceGrowth> sequences, const Layout& layout,
                         int64_t layer, Parameters parameters, const CallTerms& terms) {
  if (layout.queries == 0)
    return at::zeros({1, q.size(1), 0, cache.shape().value_columns}, q.options());
  const at::Tensor table = page_table(cache, sequences, layout.keys / cache.shape().page_rows);
  at::Tensor k = as_tensor(cache.key_pages()), v = as_tensor(cache.value_pages());
  const bool copied = method.changes_keys();
  if (copied) {
    k = gathered(k, table, layout.keys);
    v = gathered(v, table, layout.keys);
  }
  TensorOperands operands = plain_operands(q, k, v, layout);
  if (!copied) operands.pages = table, operands.key_rows = layout.keys;
  operands = applied(method, std::move(operands), layout, layer, parameters, terms);
  check_plain(cache, sequences, operands);
  return std::get<0>(attend(operands)).to(q.scalar_type());
}

}  // namespace sextant
