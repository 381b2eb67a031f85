// The operators give libtorch what the backends compute: values, gradients, shapes, errors.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"
#include "sextant/torch/operands.h"
#include "tests/torch/dense.h"
#include "tests/torch/equation.h"
#include "tests/torch/gradients.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Case {
  const char* name;
  Operands operands;
};

Operands with_speeds_of_frames(Operands o) {
  SweepOperand& sweep = o.sweeps[0];
  sweep.of_frames = {sweep.rotation, sweep.rotation};
  sweep.of_frames[1].gain = 0.7;
  for (Rotation::Pair& pair : sweep.of_frames[1].pairs) pair.speed = pair.speed + turns(0.11);
  return o;
}

void without_tables(Operands& o) {
  o.weight = o.bias = o.on_query = o.on_key = o.on_value = {};
  o.query_bias = at::Tensor();
}

// Every term at once, and each alone, so that a term that only works in company is seen.
std::vector<Case> cases() {
  const Operands all = every_term();
  Operands plain = all;
  plain.sweeps = {{.key_ranges = all.sweeps[0].key_ranges}};
  without_tables(plain);
  plain.sink = plain.mask = at::Tensor();
  const auto with = [&](const char* name, auto change) {
    Operands o = plain;
    change(o);
    return Case{name, o};
  };
  return {
      {"plain", plain},
      with("turns", [&](Operands& o) { o.sweeps = {all.sweeps[0]}; }),
      with("two sweeps", [&](Operands& o) { o.sweeps = all.sweeps; }),
      with("one of two sweeps turns",
           [&](Operands& o) {
             o.sweeps = {{.key_ranges = all.sweeps[0].key_ranges}, all.sweeps[1]};
           }),
      with("weight", [&](Operands& o) { o.weight = all.weight; }),
      with("bias", [&](Operands& o) { o.bias = all.bias; }),
      with("on_query", [&](Operands& o) { o.on_query = all.on_query; }),
      with("on_key", [&](Operands& o) { o.on_key = all.on_key; }),
      with("on_value", [&](Operands& o) { o.on_value = all.on_value; }),
      with("sink", [&](Operands& o) { o.sink = all.sink; }),
      with("mask", [&](Operands& o) { o.mask = all.mask; }),
      with("modulus",
           [&](Operands& o) {
             o.q_imag = normal({2, 4, 7, 6}, 11);
           }),
      {"every term", all},
      with("query_bias", [&](Operands& o) { o.query_bias = all.query_bias; }),
      with("query_bias of each batch entry, for all heads",
           [&](Operands& o) {
             o.query_bias = normal({2, 1, 7, 8}, 13);
           }),
      with("key_bias",
           [&](Operands& o) {
             o.key_bias = 1000 + normal({2, 4, 9}, 14);
           }),
      with("key_bias for all heads, sink and mask",
           [&](Operands& o) {
             o.key_bias = 3 * normal({1, 1, 9}, 15);
             o.sink = all.sink;
             o.mask = all.mask;
           }),
      {"every term, speeds of frames", with_speeds_of_frames(all)},
  };
}

at::Tensor out_of(const Operands& operands) { return std::get<0>(attend(operands)); }

Tensors gradients_of(const at::Tensor& out, Operands& operands) {
  Tensors inputs;
  for (const at::Tensor* x : differentiable(operands)) inputs.push_back(*x);
  return torch::autograd::grad({(out * normal(out.sizes().vec(), 99)).sum()}, inputs);
}

Operands requiring_gradients(const Operands& operands) {
  Operands o = operands;
  for (at::Tensor* x : differentiable(o)) *x = x->detach().clone().set_requires_grad(true);
  return o;
}

// What is differentiated of (out, lse).
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

// Queries that see nothing have -infinity on both sides.
double lse_difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor nothing = at::logical_and(a.isneginf(), b.isneginf());
  return largest_difference(a.masked_fill(nothing, 0), b.masked_fill(nothing, 0));
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
    Operands o = requiring_gradients(operands);
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
  Operands o = every_term();
  o.key_bias = normal({1, 1, 9}, 15);
  o = requiring_gradients(o);
  const at::Tensor lse = std::get<1>(attend(o));
  EXPECT_THAT([&] { torch::autograd::grad({lse.slice(2, 0, 6).sum()}, {o.q}); },
              ::testing::ThrowsMessage<Error>(::testing::HasSubstr("attend: key_bias: expected")));
}

TEST(Attend, GradientsAgreeWithDifferences) {
  for (const auto& [name, operands] : cases()) {
    SCOPED_TRACE(name);
    Operands o = operands;
    Tensors inputs;
    for (const at::Tensor* x : differentiable(o)) inputs.push_back(*x);
    const auto run = [&](const Tensors& values) {
      for (size_t n = 0; n < values.size(); ++n) *differentiable(o)[n] = values[n];
      return out_of(o);
    };
    EXPECT_LE(gradient_error(run, inputs), 1e-7);
  }
}

// Queries from position 3 on have biases of their own, made of two tensors; others those of
// position 3.
LazyQueryBias some_query_bias(const Diagonals& diagonals, int64_t at_once) {
  const auto rows = [](const std::vector<at::Tensor>& inputs, const QueryBlock& queries,
                       const Diagonals& seen) {
    at::Tensor distances = at::empty({seen.count}, at::kDouble);
    for (int64_t n = 0; n < seen.count; ++n)
      distances.data_ptr<double>()[n] = static_cast<double>(seen.distance(n));
    const at::Tensor at =
        at::tensor(queries.positions, at::kLong).clamp_min(3).to(at::kDouble).view({1, -1, 1});
    return at::sin(inputs[0].view({-1, 1, 1}) * distances / (at + 1)) + inputs[1] * at;
  };
  return {.inputs = {normal({4}, 20).requires_grad_(), normal({}, 21).requires_grad_()},
          .rows = rows,
          .diagonals = diagonals,
          .from = 3,
          .at_once = at_once};
}

// Texts that begin elsewhere in each batch entry.
Operands placed_by_entry() {
  Operands o = every_term();
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
at::Tensor positions_of(const Operands& o) {
  at::Tensor positions = at::zeros({o.q.size(0), o.q.size(2)}, at::kLong);
  for (int64_t n = 0; n < o.frames.size(0); ++n) {
    const int64_t* f = o.frames.data_ptr<int64_t>() + n * 7;
    const at::Tensor entries = f[0] < 0 ? positions : positions.narrow(0, f[0], 1);
    entries.narrow(1, f[1], f[2]).copy_(at::arange(f[3], f[3] + f[2], at::kLong));
  }
  return positions;
}

TEST(Attend, BiasesMadeForSomeQueriesAtATimeAreOneQueryBias) {
  for (const Operands& operands : {every_term(), cases()[1].operands, placed_by_entry()}) {
    for (const int64_t at_once : {1, 2, 100}) {
      Operands o = operands;
      o.query_bias = at::Tensor();
      o.bias = {};
      o = requiring_gradients(o);
      Operands written = o;
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
  Operands o = requiring_gradients(every_term());
  o.sink.reset();
  const auto [out, lse] = attend(o);
  EXPECT_TRUE(out.select(2, 6).eq(0).all().item<bool>());
  EXPECT_TRUE(lse.select(2, 6).isneginf().all().item<bool>());
  const at::Tensor d_q = torch::autograd::grad({out.sum()}, {o.q})[0];
  EXPECT_TRUE(d_q.select(2, 6).eq(0).all().item<bool>());
}

// x with the same values, in memory that is neither contiguous nor dense.
at::Tensor strewn(const at::Tensor& x) {
  std::vector<int64_t> sizes = x.sizes().vec();
  for (int64_t& size : sizes) size = 2 * size + 1;
  at::Tensor room = at::full(sizes, std::nan(""), x.options()).transpose(0, -1).contiguous();
  at::Tensor place = room.transpose(0, -1);
  for (int64_t dim = 0; dim < x.dim(); ++dim) place = place.slice(dim, 1, sizes[dim], 2);
  return place.copy_(x);
}

// The keys and values of `o`, which fit one page for each two entries, in pages that others hold,
// too.
Operands in_pages(const Operands& o) {
  constexpr int64_t kPageRows = 16;
  Operands paged = o;
  paged.key_rows = o.k.size(2);
  const int64_t per_entry = (paged.key_rows + kPageRows - 1) / kPageRows;
  const int64_t batch = o.k.size(0);
  paged.pages = at::arange(batch * per_entry, at::kLong).flip(0).add(1).view({batch, per_entry});
  for (at::Tensor* x : {&paged.k, &paged.v}) {
    const at::Tensor whole = *x;
    *x = at::full({batch * per_entry + 2, whole.size(1), kPageRows, whole.size(3)}, std::nan(""),
                  whole.options());
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t n = 0; n < per_entry; ++n) {
        const int64_t rows = std::min(kPageRows, paged.key_rows - n * kPageRows);
        (*x)[paged.pages[b][n].item<int64_t>()]
            .narrow(1, 0, rows)
            .copy_(whole[b].narrow(1, n * kPageRows, rows));
      }
  }
  return paged;
}

// Frames of pages begin with a page: the texts of every_term() do not, so they are one here.
Operands one_frame() {
  Operands o = every_term();
  o.frames = o.frames.narrow(0, 0, 1).clone();
  const at::Tensor sizes = at::tensor({o.q.size(2), o.k.size(2)}, at::kLong);
  o.frames[0][2] = sizes[0];
  o.frames[0][4] = 0;
  o.frames[0][5] = sizes[1];
  return o;
}

TEST(Attend, PagesChangeNoBit) {
  Operands o = one_frame();
  without_tables(o);  // their distances are other frames'
  const auto [out, lse] = attend(o);
  const auto [paged_out, paged_lse] = attend(in_pages(o));
  EXPECT_TRUE(at::equal(out, paged_out));
  EXPECT_TRUE(at::equal(lse, paged_lse));
}

TEST(Attend, GradientsGoBackIntoPages) {
  Operands o = one_frame();
  without_tables(o);
  Operands paged = in_pages(o);
  // Both entries read the same pages: a shared page gets the sum.
  paged.pages = paged.pages.narrow(0, 0, 1).clone();
  for (at::Tensor* x : {&o.k, &o.v}) *x = x->narrow(0, 0, 1).expand(x->sizes());
  o = requiring_gradients(o), paged = requiring_gradients(paged);
  const auto projected = [&](const Operands& operands) {
    const at::Tensor out = out_of(operands);
    return (out * normal(out.sizes().vec(), 99)).sum();
  };
  const Tensors expected = torch::autograd::grad({projected(o)}, {o.q, o.k, o.v, o.sink});
  const Tensors got =
      torch::autograd::grad({projected(paged)}, {paged.q, paged.k, paged.v, paged.sink});
  EXPECT_TRUE(at::equal(got[0], expected[0]));
  EXPECT_TRUE(at::equal(got[3], expected[3]));
  const int64_t page = paged.pages[0][0].item<int64_t>(), rows = paged.key_rows;
  ASSERT_LE(rows, 16);
  for (const size_t n : {1, 2}) {
    EXPECT_LE(largest_difference(got[n][page].narrow(1, 0, rows), expected[n].sum(0)), 1e-14);
    at::Tensor others = got[n].clone();
    others[page].narrow(1, 0, rows).zero_();
    EXPECT_TRUE(others.eq(0).all().item<bool>()) << "pages that nobody reads";
  }
}

TEST(Attend, RefusesPagesThatDoNotFit) {
  const Operands paged = in_pages(one_frame());
  const auto fails = [&](auto change, const char* says) {
    Operands o = paged;
    change(o);
    EXPECT_THAT([&] { attend(o); }, ThrowsMessage<Error>(HasSubstr(says)));
  };
  fails([](Operands& o) { o.key_rows = 17; }, "key_rows: expected 0 to 16, as pages hold");
  fails([](Operands& o) { o.pages = at::Tensor(); }, "attend: ");
  fails([](Operands& o) { o.pages = o.pages.to(at::kInt); }, "pages: expected Long");
  fails([](Operands& o) { o.pages = o.pages + 100; }, "pages.at[0, 0]: expected 0 to 3");
  fails([](Operands& o) { o.frames[0][4] = 1; }, "key_row");
}

TEST(Attend, StridesChangeNoBit) {
  Operands o = every_term();
  o.q_imag = normal({2, 4, 7, 6}, 11);
  const auto [out, lse] = attend(o);
  for (at::Tensor* x : differentiable(o)) *x = strewn(*x);
  o.mask = strewn(o.mask);
  const auto [strewn_out, strewn_lse] = attend(o);
  EXPECT_TRUE(at::equal(out, strewn_out));
  EXPECT_TRUE(at::equal(lse, strewn_lse));
}

TEST(Attend, SharedMemoryOfExpandedTensorsIsRead) {
  Operands o = every_term();
  o.k = o.k.slice(0, 0, 1).expand(o.k.sizes());
  o.v = o.v.slice(1, 0, 1).expand(o.v.sizes());
  Operands copied = o;
  copied.k = o.k.contiguous();
  copied.v = o.v.contiguous();
  EXPECT_TRUE(at::equal(out_of(o), out_of(copied)));
}

TEST(Attend, HeadsOfALengthFirstTensorMergeWithoutACopy) {
  Operands o = every_term();
  EXPECT_TRUE(out_of(o).is_contiguous());
  o.q = o.q.transpose(1, 2).contiguous().transpose(1, 2);
  EXPECT_TRUE(out_of(o).transpose(1, 2).is_contiguous());
}

TEST(Attend, OnlyWantedGradientsAreComputed) {
  Operands o = every_term();
  o.bias.rows = o.bias.rows.detach().clone().set_requires_grad(true);
  Operands all = requiring_gradients(every_term());
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
    Operands o;
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

TEST(Attend, Float32IsNearFloat64) {
  for (const auto& [name, operands] : cases()) {
    SCOPED_TRACE(name);
    Operands wide = requiring_gradients(operands), narrow = operands;
    for (at::Tensor* x : differentiable(narrow)) *x = x->to(at::kFloat).set_requires_grad(true);
    const at::Tensor out = out_of(wide), narrow_out = out_of(narrow);
    EXPECT_EQ(narrow_out.scalar_type(), at::kFloat);
    EXPECT_LE(largest_difference(out, narrow_out), 2e-6);
    const Tensors grads = gradients_of(out, wide), narrow_grads = gradients_of(narrow_out, narrow);
    for (size_t n = 0; n < grads.size(); ++n)
      EXPECT_LE(largest_difference(grads[n], narrow_grads[n]), 2e-5) << names(wide)[n];
  }
}

at::Tensor with_precision(at::Float32MatmulPrecision precision, const Operands& o) {
  at::globalContext().setFloat32MatmulPrecision(precision);
  at::Tensor out = out_of(o);
  at::globalContext().setFloat32MatmulPrecision(at::Float32MatmulPrecision::HIGHEST);
  return out;
}

// Long enough for AMX, which the backward pass takes by itself, and the forward pass if it may. The
// bias of one head is that of a steep ALiBi: weights and score gradients from 1 to nothing.
TEST(Attend, LongTextsInFloat32AreNearFloat64WithEveryPrecision) {
  constexpr int64_t kRows = 1100, kColumns = 16;
  const Layout layout = {.batch = 1, .queries = kRows, .keys = kRows};
  Operands o;
  for (at::Tensor* x : {&o.q, &o.k, &o.v})
    *x = normal({1, 2, kRows, kColumns}, static_cast<uint64_t>(x - &o.q) + 31);
  o.scale = 0.25;
  o.frames = frames(layout);
  o.sweeps = {{.key_ranges = visible_ranges(layout)}};
  o.farthest = kRows - 1;
  const at::Tensor distance = at::arange(kRows - 1, -1, -1, at::kDouble);
  o.bias.rows = at::stack({-0.5 * distance, -0.001 * distance});

  Operands wide = requiring_gradients(o);
  const at::Tensor exact = out_of(wide);
  const Tensors wanted = gradients_of(exact, wide);
  for (const auto precision :
       {at::Float32MatmulPrecision::HIGHEST, at::Float32MatmulPrecision::HIGH}) {
    SCOPED_TRACE(static_cast<int>(precision));
    Operands narrow = requiring_gradients(o);
    for (at::Tensor* x : differentiable(narrow))
      *x = x->detach().to(at::kFloat).set_requires_grad(true);
    const at::Tensor out = with_precision(precision, narrow);
    EXPECT_LE(largest_difference(exact, out), 2e-6);
    const Tensors got = gradients_of(out, narrow);
    for (size_t n = 0; n < got.size(); ++n)
      EXPECT_LE(largest_difference(wanted[n], got[n]), 2e-5 * wanted[n].abs().max().item<double>())
          << names(wide)[n];
  }
}

// torch.set_float32_matmul_precision("medium"): never in float64, and no bit changes where bfloat16
// is not fast.
TEST(Attend, MediumPrecisionMayRoundToBfloat16WhereThatIsFast) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    Operands o;
    o.q = normal({1, 2, 40, 16}).to(type);
    o.k = normal({1, 2, 40, 16}).to(type);
    o.v = normal({1, 2, 40, 16}).to(type);
    const Layout layout = {.batch = 1, .queries = 40, .keys = 40};
    o.frames = frames(layout);
    o.sweeps = {{.key_ranges = visible_ranges(layout)}};
    const at::Tensor exact = with_precision(at::Float32MatmulPrecision::HIGHEST, o);
    const at::Tensor medium = with_precision(at::Float32MatmulPrecision::MEDIUM, o);
    const bool rounded = multiplies_bfloat16() && type == at::kFloat;
    EXPECT_EQ(!at::equal(exact, medium), rounded);
    EXPECT_LE(largest_difference(exact, medium), 0.1);
  }
}

TEST(Attend, MetaTensorsGetTheShapesAndStridesOfRealOnes) {
  Operands real = requiring_gradients(every_term());
  real.q = real.q.detach().transpose(1, 2).contiguous().transpose(1, 2).set_requires_grad(true);
  Operands meta = real;
  for (at::Tensor* x : differentiable(meta)) *x = x->detach().to(at::kMeta).set_requires_grad(true);
  const auto [out, lse] = attend(real);
  const auto [meta_out, meta_lse] = attend(meta);
  EXPECT_TRUE(meta_out.is_meta());
  EXPECT_EQ(meta_out.sizes(), out.sizes());
  EXPECT_EQ(meta_out.strides(), out.strides());
  EXPECT_EQ(meta_lse.sizes(), lse.sizes());
  Tensors inputs, meta_inputs;
  for (const at::Tensor* x : differentiable(real)) inputs.push_back(*x);
  for (const at::Tensor* x : differentiable(meta)) meta_inputs.push_back(*x);
  const Tensors grads = torch::autograd::grad({out.sum()}, inputs);
  const Tensors meta_grads = torch::autograd::grad({meta_out.sum()}, meta_inputs);
  for (size_t n = 0; n < grads.size(); ++n) {
    EXPECT_EQ(meta_grads[n].sizes(), grads[n].sizes());
    EXPECT_EQ(meta_grads[n].strides(), grads[n].strides());
  }
}

TEST(Attend, ErrorsNameTheArgument) {
  const auto fails = [](const char* text, auto change) {
    Operands o = every_term();
    change(o);
    EXPECT_THAT([&] { attend(o); }, ThrowsMessage<Error>(HasSubstr(text)));
  };
  fails("attend: q: expected Float, BFloat16, Half or Double",
        [](Operands& o) { o.q = o.q.to(at::kInt); });
  fails("attend: q: expected Double [*, *, *, *]", [](Operands& o) { o.q = o.q[0]; });
  fails("attend: k: expected Double [2, *, *, 6], but got Float [2, 2, 9, 6]",
        [](Operands& o) { o.k = o.k.to(at::kFloat); });
  fails("attend: k: expected cpu, as q, but got meta",
        [](Operands& o) { o.k = o.k.to(at::kMeta); });
  fails("attend: v: expected Double [2, 2, 9, *], but got Double [2, 2, 8, 5]",
        [](Operands& o) { o.v = o.v.slice(2, 0, 8); });
  fails("attend: frames: expected Long [*, 7], but got Long [2, 6]",
        [](Operands& o) { o.frames = o.frames.slice(1, 0, 6); });
  fails("attend: key_ranges: expected Long [*, 1 or 2, 7, 2], but got Int", [](Operands& o) {
    for (auto& s : o.sweeps) s.key_ranges = s.key_ranges.to(at::kInt);
  });
  fails("attend: query_rotary_positions: expected at least 2 axes", [](Operands& o) {
    for (auto& s : o.sweeps) s.query_rotary_positions = s.query_rotary_positions.slice(1, 0, 1);
  });
  fails("attend: offset: expected one for each of 2 pairs",
        [](Operands& o) { o.sweeps[0].query_offset = {Turns{}}; });
  fails("attend: bias: expected Double [1 or 4, *], but got Double [3, 8]", [](Operands& o) {
    o.bias.rows = o.bias.rows.expand({3, 8});
  });
  fails("attend: bias_rows: expected Int [*], but got Long [8]",
        [](Operands& o) { o.bias.row_at = at::zeros({8}, at::kLong); });
  fails("attend: on_value: expected Double [1 or 4, *, 5], but got Double [1, 3, 4]",
        [](Operands& o) { o.on_value.rows = o.on_value.rows.slice(2, 0, 4); });
  fails("attend: sink: expected Double [4]", [](Operands& o) { o.sink = o.sink.slice(0, 0, 3); });
  fails("attend: mask: expected Bool [1 or 2, 1 or 4, 1 or 7, 1 or 9]", [](Operands& o) {
    o.mask = o.mask.expand({2, 3, 7, 9});
  });
  fails("attend: query_bias: expected Double [1 or 2, 1 or 4, 7, *], but got Double [1, 4, 6, 8]",
        [](Operands& o) { o.query_bias = o.query_bias.slice(2, 0, 6); });
  fails("attend: key_bias: expected Double [1 or 2, 1 or 4, 9], but got Double [1, 1, 8]",
        [](Operands& o) {
          o.key_bias = normal({1, 1, 8}, 1);
        });
  fails("attend: key_bias: expected Double [1 or 2, 1 or 4, 9], but got Float [1, 1, 9]",
        [](Operands& o) {
          o.key_bias = normal({1, 1, 9}, 1).to(at::kFloat);
        });
  fails("attend: query_bias: expected none beside a lazy_query_bias", [](Operands& o) {
    o.lazy_query_bias = some_query_bias({.farthest = o.farthest, .count = 8}, 1);
  });
  fails("query_bias.columns: expected at least 8",
        [](Operands& o) { o.query_bias = o.query_bias.slice(3, 0, 7); });
  // What fits in shape but not in content is the core's to refuse.
  fails("row_at", [](Operands& o) { o.weight.row_at = at::full({8}, 3, at::kInt); });
  fails("disjoint", [](Operands& o) { o.sweeps.push_back(o.sweeps[0]); });
}

TEST(Attend, GradientsThatDoNotExistAreRefused) {
  Operands o = requiring_gradients(every_term());
  const at::Tensor first =
      torch::autograd::grad({out_of(o).square().sum()}, {o.q}, {}, /*retain_graph=*/true,
                            /*create_graph=*/true)[0];
  EXPECT_THAT([&] { torch::autograd::grad({first.sum()}, {o.q}); },
              ThrowsMessage<Error>(HasSubstr("attend_backward: expected no derivative")));
}

TEST(Attend, AnOperandChangedInPlaceIsNoticed) {
  Operands o = requiring_gradients(every_term());
  const at::Tensor q = o.q * 1;
  o.q = q;
  const at::Tensor out = out_of(o);
  q.zero_();
  EXPECT_ANY_THROW(torch::autograd::grad({out.sum()}, {o.k}));
}

}  // namespace
}  // namespace sextant::testing
