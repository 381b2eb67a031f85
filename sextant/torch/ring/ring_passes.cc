// With the results o_p and lse_p = ln S_p of attention to each part p of the keys,
//
//   lse = ln sum_p exp(lse_p),   w_p = exp(lse_p - lse),   o = sum_p w_p o_p,
//
// where a sink is one more part, with its logit as lse_p and o_p = 0. So a part has the gradients
//
//   d o_p = w_p do,   d lse_p = w_p (do . (o_p - o) + d lse),
//
// which the backward pass of its own attention takes. That pass computes each part again, as o_p
// and lse_p of all parts would need P times the memory of the result.
#include "sextant/torch/ring/ring_passes.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <limits>
#include <optional>
#include <utility>

#include "sextant/torch/operators/checkpointed.h"
#include "sextant/torch/operators/kept.h"
#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/ring/key_part.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The sink of each head or of each query, or an undefined tensor.
template <class Operands>
auto& sink_of(Operands& o) {
  return o.query_sink.defined() ? o.query_sink : o.sink;
}

// The tensors of operands to which gradients flow through each part.
std::vector<at::Tensor*> through_parts(TensorOperands& o) {
  std::vector<at::Tensor*> all;
  for (at::Tensor* x : differentiable(o))
    if (x != &o.k && x != &o.v && x != &o.sink && x != &o.query_sink) all.push_back(x);
  for (at::Tensor& x : o.lazy_query_bias.inputs) all.push_back(&x);
  std::erase_if(all, [](const at::Tensor* x) { return !x->defined(); });
  return all;
}

// All differentiable tensors of the operands. Those of the sink and of the shift, which are not
// operands of a part, are the last ones.
std::vector<at::Tensor*> with_gradients(TensorOperands& o) {
  std::vector<at::Tensor*> all = through_parts(o);
  for (at::Tensor* x : {&sink_of(o), &o.query_shift})
    if (x->defined()) all.push_back(x);
  return all;
}

// A part with less weight for a query changes no digit of the query's results, in float64 either.
// Its keys' gradients from that query would mostly be denormal numbers in float32, on which the
// products of the backward pass are several times as slow.
constexpr double kLeastWeight = 0x1p-64;

// exp(lse - whole); 0 if it is less than kLeastWeight, and if both are -infinity, as for a query
// that sees no key.
at::Tensor weight(const at::Tensor& lse, const at::Tensor& whole) {
  const at::Tensor share = (lse - whole).exp();
  const at::Tensor nothing = whole == -std::numeric_limits<double>::infinity();
  return share.masked_fill(nothing.logical_or(share < kLeastWeight), 0);  // keeps other NaN
}

at::Tensor sink_lse(const at::Tensor& sink) {
  const at::Tensor all = sink.detach().to(at::kDouble);
  return all.dim() == 1 ? all.view({1, -1, 1}) : all;
}

// The result of the parts so far: out in the type of the computation, lse in float64.
struct MergedParts {
  at::Tensor out, lse;

  void join(const at::Tensor& part_out, const at::Tensor& part_lse) {
    const at::Tensor more = part_lse.to(at::kDouble), all = at::logaddexp(lse, more);
    const auto by = [&](const at::Tensor& part) {
      return weight(part, all).to(out.scalar_type()).unsqueeze(3);
    };
    out = out * by(lse) + part_out * by(more);
    lse = all;
  }
  void join_sink(const at::Tensor& sink) {
    const at::Tensor all = at::logaddexp(lse, sink_lse(sink));
    out = out * weight(lse, all).to(out.scalar_type()).unsqueeze(3);
    lse = all;
  }
};

// The gradients of the results of one RingQueries, and these results.
struct ResultGradients {
  at::Tensor out, lse, d_out, d_lse;  // lse, d_lse in float64

  // do . x - do . out + d lse, where x = o_p: without w_p
  at::Tensor of_lse(const at::Tensor& part_out) const {
    return (d_out * (part_out - out)).sum(-1).to(at::kDouble) + d_lse;
  }
};

class Ring {
 public:
  Ring(Group group, Shards shards, std::vector<RingQueries> queries)
      : group_(std::move(group)), shards_(shards), queries_(std::move(queries)) {
    for (RingQueries& own : queries_) {
      wanted_.emplace_back();
      const std::vector<at::Tensor*> operands = through_parts(own.operands);
      for (size_t i = 0; i < operands.size(); ++i)
        if (operands[i]->requires_grad()) wanted_.back().push_back(i);
    }
  }

  // The queries with operands that record no gradients, for the backward pass.
  void detach() {
    for (RingQueries& own : queries_)
      for (at::Tensor* x : with_gradients(own.operands)) *x = x->detach();
  }

  std::vector<MergedParts> forward(const at::Tensor& k, const at::Tensor& v) const {
    std::vector<MergedParts> results;
    for (const RingQueries& own : queries_) results.push_back(nothing_seen(own, v));
    std::vector<at::Tensor> held = {k, v};
    for (int64_t step = 0; step < group_.size(); ++step) {
      std::optional<RingTransfer> transfer = send_on(held, step);
      each_part(held, step, [&](size_t n, const Positions& keys, int64_t row) {
        const auto [out, lse] = attend(part(queries_[n], keys, row, held));
        results[n].join(out, lse);
      });
      if (transfer) held = transfer->wait();
    }
    for (size_t n = 0; n < queries_.size(); ++n)
      if (const at::Tensor& sink = sink_of(queries_[n].operands); sink.defined())
        results[n].join_sink(sink);
    return results;
  }

  // The gradients of all with_gradients() of all queries, then of k and v.
  variable_list backward(const at::Tensor& k, const at::Tensor& v,
                         const std::vector<ResultGradients>& results) {
    std::vector<variable_list> sums;
    for (RingQueries& own : queries_) {
      sums.emplace_back();
      for (const at::Tensor* x : with_gradients(own.operands))
        sums.back().push_back(at::zeros_like(*x, at::MemoryFormat::Contiguous));
    }
    std::vector<at::Tensor> held = {k, v}, d_held;
    std::optional<RingTransfer> of_gradients;
    for (int64_t step = 0; step < group_.size(); ++step) {
      std::optional<RingTransfer> transfer = send_on(held, step);
      std::vector<at::Tensor> own = {zeros_for(k), zeros_for(v)};
      each_part(held, step, [&](size_t n, const Positions& keys, int64_t row) {
        add_gradients(n, keys, row, held, results[n], sums[n], own);
      });
      // The sums for the keys that are held come from the rank that held them before.
      if (of_gradients) {
        d_held = of_gradients->wait();
        for (size_t n = 0; n < own.size(); ++n) d_held[n].add_(own[n]);
      } else {
        d_held = std::move(own);
      }
      of_gradients = group_.pass_on(d_held);
      if (transfer) held = transfer->wait();
    }
    d_held = of_gradients->wait();  // of this rank's own keys again
    variable_list gradients;
    for (size_t n = 0; n < queries_.size(); ++n) {
      add_sink_and_shift(queries_[n].operands, results[n], sums[n]);
      for (at::Tensor& sum : sums[n]) gradients.push_back(std::move(sum));
    }
    gradients.push_back(d_held[0].to(k.scalar_type()));
    gradients.push_back(d_held[1].to(v.scalar_type()));
    return gradients;
  }

 private:
  static at::Tensor zeros_for(const at::Tensor& x) {
    return at::zeros(x.sizes(), x.options().dtype(wide_type(x)));
  }

  static MergedParts nothing_seen(const RingQueries& own, const at::Tensor& v) {
    const at::Tensor& q = own.operands.q;
    const auto options = q.options().requires_grad(false);
    return {at::zeros({q.size(0), q.size(1), q.size(2), v.size(3)}, options),
            at::full({q.size(0), q.size(1), q.size(2)}, -std::numeric_limits<double>::infinity(),
                     options.dtype(at::kDouble))};
  }

  std::optional<RingTransfer> send_on(const std::vector<at::Tensor>& held, int64_t step) const {
    if (step + 1 == group_.size()) return {};
    return group_.pass_on(held);
  }

  // Calls f(n, keys, row) for the queries n and each part of the held keys that they see, whose
  // positions are `keys` and whose first row is `row` of those held.
  template <class F>
  void each_part(const std::vector<at::Tensor>& held, int64_t step, F&& f) const {
    const int64_t from = (group_.rank() - step + group_.size()) % group_.size();
    int64_t row = 0;
    for (const Positions& keys :
         positions_of_shard(shards_, from, group_.size(), held[0].size(2))) {
      for (size_t n = 0; n < queries_.size(); ++n)
        if (sees(queries_[n].operands, keys)) f(n, keys, row);
      row += keys.count;
    }
  }

  static TensorOperands part(const RingQueries& own, const Positions& keys, int64_t row,
                             const std::vector<at::Tensor>& held) {
    return key_part(own.operands, own.diagonals, keys, held[0].narrow(2, row, keys.count),
                    held[1].narrow(2, row, keys.count));
  }

  void add_gradients(size_t n, const Positions& keys, int64_t row,
                     const std::vector<at::Tensor>& held, const ResultGradients& whole,
                     variable_list& sums, std::vector<at::Tensor>& d_held) const {
    RingQueries own = queries_[n];
    const std::vector<at::Tensor*> operands = through_parts(own.operands);
    const std::vector<size_t>& wanted = wanted_[n];
    variable_list inputs;
    for (const size_t i : wanted) inputs.push_back(*operands[i]);
    for (const at::Tensor& x : held) inputs.push_back(to_float(x.narrow(2, row, keys.count)));
    const size_t of_keys = wanted.size();
    const auto run = [&](const variable_list& leaves) {
      for (size_t i = 0; i < of_keys; ++i) *operands[wanted[i]] = leaves[i];
      const auto [out, lse] =
          attend(key_part(own.operands, own.diagonals, keys, leaves[of_keys], leaves[of_keys + 1]));
      return variable_list{out, lse};
    };
    const auto gradients_of = [&](const variable_list& results) {
      const at::Tensor w = weight(results[1].to(at::kDouble), whole.lse);
      return variable_list{w.to(results[0].scalar_type()).unsqueeze(3) * whole.d_out,
                           (w * whole.of_lse(results[0])).to(results[1].scalar_type())};
    };
    const variable_list found = gradients_by_results(run, inputs, gradients_of);
    for (size_t i = 0; i < of_keys; ++i)
      if (found[i].defined()) sums[wanted[i]].add_(found[i]);
    for (size_t i = 0; i < held.size(); ++i)
      if (found[of_keys + i].defined())
        d_held[i].narrow(2, row, keys.count).add_(found[of_keys + i]);
  }

  // A shift of all scores changes their share against the sink's, and lse.
  static void add_sink_and_shift(const TensorOperands& o, const ResultGradients& whole,
                                 variable_list& sums) {
    const at::Tensor along = (whole.d_out * whole.out).sum(-1).to(at::kDouble);
    at::Tensor d_shift = whole.d_lse;
    const at::Tensor& sink = sink_of(o);
    auto next = sums.end() - (sink.defined() ? 1 : 0) - (o.query_shift.defined() ? 1 : 0);
    if (sink.defined()) {
      const at::Tensor w = weight(sink_lse(sink), whole.lse);
      const at::Tensor d_sink = w * (whole.d_lse - along);
      (next++)->add_(sink.dim() == 1 ? d_sink.sum(c10::IntArrayRef{0, 2}) : d_sink);
      d_shift = d_shift + w * (along - whole.d_lse);
    }
    if (o.query_shift.defined()) next->add_(d_shift);
  }

  Group group_;
  Shards shards_;
  std::vector<RingQueries> queries_;
  // For each of the queries: which of its through_parts() need gradients. A gradient of a table by
  // distance that nobody trains (alibi) would take most of the time.
  std::vector<std::vector<size_t>> wanted_;
};

variable_list with_gradients(std::vector<RingQueries>& queries) {
  variable_list all;
  for (RingQueries& own : queries)
    for (const at::Tensor* x : with_gradients(own.operands)) all.push_back(*x);
  return all;
}

// `inputs` are all with_gradients() of the queries, then k and v. The results are out and lse of
// each of the queries.
class RingFunction : public torch::autograd::Function<RingFunction> {
 public:
  static variable_list forward(AutogradContext* context, at::TensorList inputs, Ring ring) {
    const size_t of_keys = inputs.size() - 2;
    const std::vector<MergedParts> merged = ring.forward(inputs[of_keys], inputs[of_keys + 1]);
    variable_list saved = inputs.vec(), results;
    for (const MergedParts& one : merged) {
      results.push_back(one.out);
      results.push_back(one.lse.to(one.out.scalar_type()));
      saved.push_back(one.out);
      saved.push_back(one.lse);
    }
    context->save_for_backward(std::move(saved));
    context->set_materialize_grads(false);
    ring.detach();
    keep(context, std::move(ring));
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_results) {
    expect_first_derivative("ring_attention");
    Ring ring = kept<Ring>(context);
    const variable_list saved = context->get_saved_variables();
    const size_t of_results = saved.size() - d_results.size(), of_keys = of_results - 2;
    std::vector<ResultGradients> results;
    for (size_t n = of_results; n < saved.size(); n += 2) {
      const at::Tensor &d_out = d_results[n - of_results], &d_lse = d_results[n - of_results + 1];
      results.push_back(
          {.out = saved[n],
           .lse = saved[n + 1],
           .d_out = d_out.defined() ? d_out : at::zeros_like(saved[n]),
           .d_lse = d_lse.defined() ? d_lse.to(at::kDouble) : at::zeros_like(saved[n + 1])});
    }
    variable_list gradients = ring.backward(saved[of_keys], saved[of_keys + 1], results);
    gradients.emplace_back();  // `ring` has no gradient
    return gradients;
  }
};

}  // namespace

std::vector<std::tuple<at::Tensor, at::Tensor>> ring_passes(const Group& group, Shards shards,
                                                            const std::vector<RingQueries>& queries,
                                                            const at::Tensor& k,
                                                            const at::Tensor& v) {
  std::vector<RingQueries> own = queries;
  variable_list inputs = with_gradients(own);
  inputs.push_back(k);
  inputs.push_back(v);
  const variable_list results =
      RingFunction::apply(at::TensorList(inputs), Ring(group, shards, std::move(own)));
  std::vector<std::tuple<at::Tensor, at::Tensor>> pairs;
  for (size_t n = 0; n < results.size(); n += 2) pairs.emplace_back(results[n], results[n + 1]);
  return pairs;
}

}  // namespace sextant
