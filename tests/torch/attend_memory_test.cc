// attend() reads operands in memory of any strides, in pages, and without data (meta).
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/operands.h"
#include "tests/torch/attend_cases.h"
#include "tests/torch/dense.h"
#include "tests/torch/equation.h"
#include "tests/torch/gradients.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

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
TensorOperands in_pages(const TensorOperands& o) {
  constexpr int64_t kPageRows = 16;
  TensorOperands paged = o;
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
TensorOperands one_frame() {
  TensorOperands o = every_term();
  o.frames = o.frames.narrow(0, 0, 1).clone();
  const at::Tensor sizes = at::tensor({o.q.size(2), o.k.size(2)}, at::kLong);
  o.frames[0][2] = sizes[0];
  o.frames[0][4] = 0;
  o.frames[0][5] = sizes[1];
  return o;
}

TEST(Attend, PagesChangeNoBit) {
  TensorOperands o = one_frame();
  without_tables(o);  // their distances are other frames'
  const auto [out, lse] = attend(o);
  const auto [paged_out, paged_lse] = attend(in_pages(o));
  EXPECT_TRUE(at::equal(out, paged_out));
  EXPECT_TRUE(at::equal(lse, paged_lse));
}

TEST(Attend, GradientsGoBackIntoPages) {
  TensorOperands o = one_frame();
  without_tables(o);
  TensorOperands paged = in_pages(o);
  // Both entries read the same pages: a shared page gets the sum.
  paged.pages = paged.pages.narrow(0, 0, 1).clone();
  for (at::Tensor* x : {&o.k, &o.v}) *x = x->narrow(0, 0, 1).expand(x->sizes());
  o = requiring_gradients(o), paged = requiring_gradients(paged);
  const auto projected = [&](const TensorOperands& operands) {
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
  const TensorOperands paged = in_pages(one_frame());
  const auto fails = [&](auto change, const char* says) {
    TensorOperands o = paged;
    change(o);
    EXPECT_THAT([&] { attend(o); }, ThrowsMessage<Error>(HasSubstr(says)));
  };
  fails([](TensorOperands& o) { o.key_rows = 17; }, "key_rows: expected 0 to 16, as pages hold");
  fails([](TensorOperands& o) { o.pages = at::Tensor(); }, "attend: ");
  fails([](TensorOperands& o) { o.pages = o.pages.to(at::kInt); }, "pages: expected Long");
  fails([](TensorOperands& o) { o.pages = o.pages + 100; }, "pages.at[0, 0]: expected 0 to 3");
  fails([](TensorOperands& o) { o.frames[0][4] = 1; }, "key_row");
}

TEST(Attend, StridesChangeNoBit) {
  TensorOperands o = every_term();
  o.q_imag = normal({2, 4, 7, 6}, 11);
  const auto [out, lse] = attend(o);
  for (at::Tensor* x : differentiable(o)) *x = strewn(*x);
  o.mask = strewn(o.mask);
  const auto [strewn_out, strewn_lse] = attend(o);
  EXPECT_TRUE(at::equal(out, strewn_out));
  EXPECT_TRUE(at::equal(lse, strewn_lse));
}

TEST(Attend, SharedMemoryOfExpandedTensorsIsRead) {
  TensorOperands o = every_term();
  o.k = o.k.slice(0, 0, 1).expand(o.k.sizes());
  o.v = o.v.slice(1, 0, 1).expand(o.v.sizes());
  TensorOperands copied = o;
  copied.k = o.k.contiguous();
  copied.v = o.v.contiguous();
  EXPECT_TRUE(at::equal(out_of(o), out_of(copied)));
}

TEST(Attend, HeadsOfALengthFirstTensorMergeWithoutACopy) {
  TensorOperands o = every_term();
  EXPECT_TRUE(out_of(o).is_contiguous());
  o.q = o.q.transpose(1, 2).contiguous().transpose(1, 2);
  EXPECT_TRUE(out_of(o).transpose(1, 2).is_contiguous());
}

TEST(Attend, MetaTensorsGetTheShapesAndStridesOfRealOnes) {
  TensorOperands real = requiring_gradients(every_term());
  real.q = real.q.detach().transpose(1, 2).contiguous().transpose(1, 2).set_requires_grad(true);
  TensorOperands meta = real;
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

}  // namespace
}  // namespace sextant::testing
