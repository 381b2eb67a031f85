#include "sextant/torch/ring.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/ring/ring_passes.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

// A number that all ranks must have in common, and its name in errors; empty: its digits.
struct Common {
  const char* field;
  int64_t value;
  std::string name = {};
};

Common type_of(const char* field, const at::Tensor& x) {
  if (!x.defined()) return {field, -1, "none"};
  return {field, static_cast<int64_t>(x.scalar_type()), c10::toString(x.scalar_type())};
}

// Throws Error on all ranks if they differ. n numbers are equal if n times the sum of their squares
// is the square of their sum.
void check_alike(const Group& group, const std::vector<Common>& fields) {
  if (group.size() == 1) return;
  const auto count = static_cast<int64_t>(fields.size());
  const at::Tensor sums = at::empty({2, count}, at::kDouble);
  auto* sum = sums.data_ptr<double>();
  for (int64_t n = 0; n < count; ++n) {
    sum[n] = static_cast<double>(fields[static_cast<size_t>(n)].value);
    sum[count + n] = sum[n] * sum[n];
  }
  group.all_reduce({sums});
  for (int64_t n = 0; n < count; ++n) {
    if (static_cast<double>(group.size()) * sum[count + n] == sum[n] * sum[n]) continue;
    const auto& [field, value, name] = fields[static_cast<size_t>(n)];
    fail("ring_attention: " + std::string(field) + ": expected the same on all ranks, but got " +
         (name.empty() ? std::to_string(value) : name) + " on rank " +
         std::to_string(group.rank()) + ", and others elsewhere");
  }
}

void check_shapes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& key_bias) {
  for (const auto& [name, x] : {std::pair{"q", &q}, {"k", &k}, {"v", &v}})
    if (x->dim() != 4)
      fail(std::string("ring_attention: ") + name +
           ": expected [batch, heads, rows, columns], but got " + std::to_string(x->dim()) +
           " dimensions");
  for (const auto& [name, x] : {std::pair{"k", &k}, {"v", &v}})
    if (x->size(2) != q.size(2))
      fail(std::string("ring_attention: ") + name + ": expected " + std::to_string(q.size(2)) +
           " rows, as q, but got " + std::to_string(x->size(2)));
  if (key_bias.defined() && (key_bias.dim() == 0 || key_bias.size(-1) != k.size(2)))
    fail("ring_attention: key_bias: expected " + std::to_string(k.size(2)) +
         " columns, the rank's own keys, but got " +
         (key_bias.dim() == 0 ? "a number" : std::to_string(key_bias.size(-1))));
}

// The layout of a rank's queries at `own` with the keys at `keys`.
Layout layout_of(const at::Tensor& q, const Positions& own, const Positions& keys, bool causal) {
  return {.batch = q.size(0),
          .queries = own.count,
          .keys = keys.count,
          .first_query = own.first,
          .first_key = keys.first,
          .causal = causal};
}

// k and v of the whole sequence. A method reads their shapes and the further columns of k only: the
// other elements are zeros that share one place in memory.
std::pair<at::Tensor, at::Tensor> shapes_of_all(const Group& group, Shards shards,
                                                const at::Tensor& k, const at::Tensor& v,
                                                int64_t further) {
  const int64_t keys = k.size(2) * group.size();
  const auto zeros = [&](const at::Tensor& x, int64_t columns) {
    const auto options = x.options().requires_grad(false);
    return at::zeros({1}, options).expand({x.size(0), x.size(1), keys, columns});
  };
  const int64_t columns = k.size(3) - further;
  at::Tensor all_k = zeros(k, columns);
  if (further > 0) all_k = at::cat({all_k, unsharded(k.slice(3, columns), 2, shards, group)}, 3);
  return {all_k, zeros(v, v.size(3))};
}

// The rank's own keys and values as the method changes them.
std::pair<at::Tensor, at::Tensor> changed_keys(const Method& method, const at::Tensor& q,
                                               const at::Tensor& k, const at::Tensor& v,
                                               const std::vector<Positions>& chunks, bool causal,
                                               int64_t layer, Parameters parameters) {
  std::vector<at::Tensor> keys, values;
  int64_t row = 0;
  for (const Positions& own : chunks) {
    const auto rows = [&](const at::Tensor& x) { return x.narrow(2, row, own.count); };
    const Layout layout = layout_of(q, own, own, causal);
    const TensorOperands operands = applied(
        method, plain_operands(rows(q), rows(k), rows(v), layout), layout, layer, parameters);
    keys.push_back(operands.k);
    values.push_back(operands.v);
    row += own.count;
  }
  return {at::cat(keys, 2), at::cat(values, 2)};
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> attend_ring(const Group& group, const Method& method,
                                               const at::Tensor& q, const at::Tensor& k,
                                               const at::Tensor& v, const RingLayout& ring,
                                               int64_t layer, Parameters parameters,
                                               const CallTerms& given) {
  check_shapes(q, k, v, given.key_bias);
  if (given.dropout.p != 0)
    fail(
        "ring_attention: dropout_p: expected 0, as the weights that it drops depend on rows of a "
        "rank, not on positions, but got " +
        std::to_string(given.dropout.p));
  check_alike(group, {{"q: batch entries", q.size(0)},
                      {"q: heads", q.size(1)},
                      {"q: rows", q.size(2)},
                      {"k: heads", k.size(1)},
                      {"k: columns", k.size(3)},
                      {"v: columns", v.size(3)},
                      type_of("k: type", k),
                      type_of("v: type", v),
                      type_of("key_bias: type", given.key_bias),
                      {"key_bias: elements", given.key_bias.defined() ? given.key_bias.numel() : 0},
                      {"causal", ring.causal, ring.causal ? "true" : "false"},
                      {"shards", static_cast<int64_t>(ring.shards),
                       ring.shards == Shards::kZigzag ? "zigzag" : "contiguous"}});
  const std::vector<Positions> chunks =
      positions_of_shard(ring.shards, group.rank(), group.size(), q.size(2));
  const auto [all_k, all_v] = shapes_of_all(group, ring.shards, k, v, method.further_key_columns());
  CallTerms terms = given;
  if (terms.key_bias.defined())
    terms.key_bias = unsharded(terms.key_bias, terms.key_bias.dim() - 1, ring.shards, group);

  const Positions all = {0, all_k.size(2)};
  std::vector<RingQueries> queries;
  int64_t row = 0;
  for (const Positions& own : chunks) {
    const Layout layout = layout_of(q, own, all, ring.causal);
    // Parts are joined in the type of the computation, and rounded once.
    const at::Tensor rows = to_float(q.narrow(2, row, own.count));
    TensorOperands operands = applied(method, plain_operands(rows, all_k, all_v, layout), layout,
                                      layer, parameters, terms);
    operands.k = at::Tensor();
    operands.v = at::Tensor();
    queries.push_back({.operands = std::move(operands), .diagonals = layout.diagonals()});
    row += own.count;
  }
  const auto [own_k, own_v] =
      method.changes_keys() ? changed_keys(method, q, k, v, chunks, ring.causal, layer, parameters)
                            : std::pair(k, v);
  std::vector<at::Tensor> outs, lses;
  for (const auto& [out, lse] : ring_passes(group, ring.shards, queries, own_k, own_v)) {
    outs.push_back(out);
    lses.push_back(lse);
  }
  return {at::cat(outs, 2).to(q.scalar_type()), at::cat(lses, 2)};
}

}  // namespace sextant
