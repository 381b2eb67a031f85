// attend() has the values and gradients of the score equation.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/operands.h"
#include "tests/torch/attend_cases.h"
#include "tests/torch/dense.h"
#include "tests/torch/equation.h"
#include "tests/torch/gradients.h"
#include "tests/torch/lazy_query_bias_case.h"

namespace sextant::testing {
namespace {

// The results that are differentiated, as a function of (out, lse).
using OfResults = std::function<at::Tensor(const std::tuple<at::Tensor, at::Tensor>&)>;
std::vector<std::pair<const char*, OfResults>> results() {
  return {
      {"out", [](const auto& both) { return std::get<0>(both); }},
      {"both",
       [](const auto& both) {
         return at::cat({std::get<0>(both), std::get<1>(both).unsqueeze(-1)}, -1);
       }},
  };
}

TEST(Attend, AgreesWithTheEquationWrittenOut) {
  for (const auto& [name, operands] : cases()) {
    SCOPED_TRACE(name);
    const auto [out, lse] = attend(operands);
    const auto [expected_out, expected_lse] = equation(operands);
    EXPECT_LE(largest_difference(out, expected_out), 1e-13);
    EXPECT_LE(lse_difference(lse, expected_lse), 1e-13);
  }
}

TEST(Attend, GradientsAgreeWithAutogradOfTheEquation) {
  for (const auto& [name, operands] : cases()) {
    SCOPED_TRACE(name);
    TensorOperands o = requiring_gradients(operands);
    for (const auto& [which, of] : results()) {
      if (o.key_bias.defined() && std::string(which) == "both") continue;
      // Only from queries that see something: elsewhere autograd of a softmax over nothing is NaN.
      const Tensors got = gradients_of(of(attend(o)).slice(2, 0, 6), o);
      const Tensors expected = gradients_of(of(equation(o)).slice(2, 0, 6), o);
      for (size_t n = 0; n < got.size(); ++n)
        EXPECT_LE(largest_difference(got[n], expected[n].nan_to_num()), 1e-12)
            << names(o)[n] << " from " << which;
    }
  }
}

TEST(Attend, LseRelativeToAKeyBiasHasNoGradient) {
  TensorOperands o = every_term();
  o.key_bias = normal({1, 1, 9}, 15);
  o = requiring_gradients(o);
  const at::Tensor lse = std::get<1>(attend(o));
  EXPECT_THAT([&] { torch::autograd::grad({lse.slice(2, 0, 6).sum()}, {o.q}); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("attend: key_bias: expected")));
}

TEST(Attend, GradientsAgreeWithDifferences) {
  for (const auto& [name, operands] : cases()) {
    SCOPED_TRACE(name);
    TensorOperands o = operands;
    Tensors inputs;
    for (const at::Tensor* x : differentiable(o)) inputs.push_back(*x);
    const auto run = [&](const Tensors& values) {
      for (size_t n = 0; n < values.size(); ++n) *differentiable(o)[n] = values[n];
      return out_of(o);
    };
    EXPECT_LE(gradient_error(run, inputs), 1e-7);
  }
}

// Texts that begin elsewhere in each batch entry.
TensorOperands placed_by_entry() {
  TensorOperands o = every_term();
  const at::Tensor all = o.frames;
  std::vector<at::Tensor> frames;
  for (int64_t b = 0; b < o.q.size(0); ++b)
    for (int64_t n = 0; n < all.size(0); ++n) {
      at::Tensor frame = all[n].clone();
      frame[0].fill_(b);
      for (const int field : {3, 6}) frame[field].add_(b);
      frames.push_back(frame);
    }
  o.frames = at::stack(frames);
  return o;
}

// [batch, queries]
at::Tensor positions_of(const TensorOperands& o) {
  at::Tensor positions = at::zeros({o.q.size(0), o.q.size(2)}, at::kLong);
  for (int64_t n = 0; n < o.frames.size(0); ++n) {
    const int64_t* f = o.frames.data_ptr<int64_t>() + n * 7;
    const at::Tensor entries = f[0] < 0 ? positions : positions.narrow(0, f[0], 1);
    entries.narrow(1, f[1], f[2]).copy_(at::arange(f[3], f[3] + f[2], at::kLong));
  }
  return positions;
}

TEST(Attend, BiasesMadeForSomeQueriesAtATimeAreOneQueryBias) {
  TensorOperands dropped = every_term();
  dropped.softcap = 2;
  dropped.dropout = {.p = 0.4, .seed = at::full({1}, 8, at::kLong)};
  for (const TensorOperands& operands :
       {every_term(), cases()[1].operands, placed_by_entry(), dropped}) {
    for (const int64_t at_once : {1, 2, 100}) {
      TensorOperands o = operands;
      o.query_bias = at::Tensor();
      o.bias = {};
      o = requiring_gradients(o);
      TensorOperands written = o;
      const LazyQueryBias lazy = some_query_bias({.farthest = o.farthest, .count = 8}, at_once);
      o.lazy_query_bias = lazy;
      o.bias.rows = lazy.rows(lazy.inputs, {.positions = {0}}, lazy.diagonals).select(1, 0);
      const auto [out, lse] = attend(o);

      std::vector<at::Tensor> entries;
      for (const at::Tensor& of : positions_of(o).unbind(0)) {
        const std::vector<int64_t> positions(of.data_ptr<int64_t>(),
                                             of.data_ptr<int64_t>() + of.numel());
        entries.push_back(lazy.rows(lazy.inputs, {.positions = positions}, lazy.diagonals));
      }
      written.query_bias = at::stack(entries);
      const auto [expected_out, expected_lse] = attend(written);
      EXPECT_LE(largest_difference(out, expected_out), 1e-13);
      EXPECT_LE(lse_difference(lse, expected_lse), 1e-13);

      Tensors inputs = lazy.inputs;
      for (const at::Tensor* x : differentiable(written))
        if (x->is_leaf()) inputs.push_back(*x);
      const at::Tensor above = normal(out.sizes().vec(), 99).slice(2, 0, 6);
      const Tensors got = torch::autograd::grad({(out.slice(2, 0, 6) * above).sum()}, inputs);
      const Tensors wanted =
          torch::autograd::grad({(expected_out.slice(2, 0, 6) * above).sum()}, inputs);
      for (size_t n = 0; n < got.size(); ++n)
        EXPECT_LE(largest_difference(got[n], wanted[n]), 1e-12) << n;
    }
  }
}

TEST(Attend, AQueryThatSeesNothingGivesZerosAndGetsNoGradient) {
  TensorOperands o = requiring_gradients(every_term());
  o.sink.reset();
  const auto [out, lse] = attend(o);
  EXPECT_TRUE(out.select(2, 6).eq(0).all().item<bool>());
  EXPECT_TRUE(lse.select(2, 6).isneginf().all().item<bool>());
  const at::Tensor d_q = torch::autograd::grad({out.sum()}, {o.q})[0];
  EXPECT_TRUE(d_q.select(2, 6).eq(0).all().item<bool>());
}

TEST(Attend, OnlyWantedGradientsAreComputed) {
  TensorOperands o = every_term();
  o.bias.rows = o.bias.rows.detach().clone().set_requires_grad(true);
  TensorOperands all = requiring_gradients(every_term());
  const at::Tensor one = torch::autograd::grad({out_of(o).sum()}, {o.bias.rows})[0];
  const at::Tensor of_all = torch::autograd::grad({out_of(all).sum()}, {all.bias.rows})[0];
  EXPECT_TRUE(at::equal(one, of_all));
  EXPECT_FALSE(out_of(every_term()).requires_grad());
}

TEST(Attend, EmptySizesWork) {
  struct Sizes {
    int64_t batch, heads, queries, keys, columns, value_columns;
  };
  for (const Sizes& s :
       {Sizes{0, 2, 3, 3, 4, 4}, Sizes{1, 0, 3, 3, 4, 4}, Sizes{1, 2, 0, 3, 4, 4},
        Sizes{1, 2, 3, 0, 4, 4}, Sizes{1, 2, 3, 3, 0, 4}, Sizes{1, 2, 3, 3, 4, 0}}) {
    TensorOperands o;
    o.q = normal({s.batch, s.heads, s.queries, s.columns}).set_requires_grad(true);
    o.k = normal({s.batch, s.heads, s.keys, s.columns}).set_requires_grad(true);
    o.v = normal({s.batch, s.heads, s.keys, s.value_columns}).set_requires_grad(true);
    const Layout layout = {.batch = s.batch, .queries = s.queries, .keys = s.keys};
    o.frames = frames(layout);
    o.sweeps = {{.key_ranges = visible_ranges(layout)}};
    const at::Tensor out = out_of(o);
    EXPECT_EQ(out.sizes(), at::IntArrayRef({s.batch, s.heads, s.queries, s.value_columns}));
    EXPECT_TRUE(out.isfinite().all().item<bool>());
    for (const at::Tensor& grad : gradients_of(out, o))
      EXPECT_TRUE(grad.isfinite().all().item<bool>());
  }
}

}  // namespace
}  // namespace sextant::testing
