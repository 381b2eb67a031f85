// attend() refuses operands and derivatives that it does not support.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "sextant/base/error.h"
#include "sextant/torch/operands.h"
#include "tests/torch/attend_cases.h"
#include "tests/torch/dense.h"
#include "tests/torch/equation.h"
#include "tests/torch/lazy_query_bias_case.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Attend, ErrorsNameTheArgument) {
  const auto fails = [](const char* text, auto change) {
    TensorOperands o = every_term();
    change(o);
    EXPECT_THAT([&] { attend(o); }, ThrowsMessage<Error>(HasSubstr(text)));
  };
  fails("attend: q: expected Float, BFloat16, Half or Double",
        [](TensorOperands& o) { o.q = o.q.to(at::kInt); });
  fails("attend: q: expected Double [*, *, *, *]", [](TensorOperands& o) { o.q = o.q[0]; });
  fails("attend: k: expected Double [2, *, *, 6], but got Float [2, 2, 9, 6]",
        [](TensorOperands& o) { o.k = o.k.to(at::kFloat); });
  fails("attend: k: expected cpu, as q, but got meta",
        [](TensorOperands& o) { o.k = o.k.to(at::kMeta); });
  fails("attend: v: expected Double [2, 2, 9, *], but got Double [2, 2, 8, 5]",
        [](TensorOperands& o) { o.v = o.v.slice(2, 0, 8); });
  fails("attend: frames: expected Long [*, 7], but got Long [2, 6]",
        [](TensorOperands& o) { o.frames = o.frames.slice(1, 0, 6); });
  fails("attend: key_ranges: expected Long [1 or 2, 7, 2], but got Int", [](TensorOperands& o) {
    for (auto& s : o.sweeps) s.key_ranges = s.key_ranges.to(at::kInt);
  });
  fails("attend: query_rotary_positions: expected at least 2 axes", [](TensorOperands& o) {
    for (auto& s : o.sweeps) s.query_rotary_positions = s.query_rotary_positions.slice(1, 0, 1);
  });
  fails("attend: offset: expected one for each of 2 pairs",
        [](TensorOperands& o) { o.sweeps[0].query_offset = {Turns{}}; });
  fails("attend: bias: expected Double [1 or 4, *], but got Double [3, 8]", [](TensorOperands& o) {
    o.bias.rows = o.bias.rows.expand({3, 8});
  });
  fails("attend: bias_rows: expected Int [*], but got Long [8]",
        [](TensorOperands& o) { o.bias.row_at = at::zeros({8}, at::kLong); });
  fails("attend: on_value: expected Double [1 or 4, *, 5], but got Double [1, 3, 4]",
        [](TensorOperands& o) { o.on_value.rows = o.on_value.rows.slice(2, 0, 4); });
  fails("attend: sink: expected Double [4]",
        [](TensorOperands& o) { o.sink = o.sink.slice(0, 0, 3); });
  fails("attend: mask: expected Bool [1 or 2, 1 or 4, 1 or 7, 1 or 9]", [](TensorOperands& o) {
    o.mask = o.mask.expand({2, 3, 7, 9});
  });
  fails("attend: softcap: expected a finite number above 0, or 0 for none",
        [](TensorOperands& o) { o.softcap = -1; });
  fails("attend: dropout_p: expected at least 0 and below 1",
        [](TensorOperands& o) { o.dropout.p = 1; });
  fails("attend: dropout_seed: expected Long [1], as there is a dropout_p, but got none",
        [](TensorOperands& o) { o.dropout.p = 0.5; });
  fails("attend: dropout_seed: expected Long [1], but got Int [1]",
        [](TensorOperands& o) { o.dropout = {.p = 0.5, .seed = at::zeros({1}, at::kInt)}; });
  fails("attend: query_bias: expected Double [1 or 2, 1 or 4, 7, *], but got Double [1, 4, 6, 8]",
        [](TensorOperands& o) { o.query_bias = o.query_bias.slice(2, 0, 6); });
  fails("attend: key_bias: expected Double [1 or 2, 1 or 4, 9], but got Double [1, 1, 8]",
        [](TensorOperands& o) {
          o.key_bias = normal({1, 1, 8}, 1);
        });
  fails("attend: key_bias: expected Double [1 or 2, 1 or 4, 9], but got Float [1, 1, 9]",
        [](TensorOperands& o) {
          o.key_bias = normal({1, 1, 9}, 1).to(at::kFloat);
        });
  fails("attend: query_bias: expected none beside a lazy_query_bias", [](TensorOperands& o) {
    o.lazy_query_bias = some_query_bias({.farthest = o.farthest, .count = 8}, 1);
  });
  fails("query_bias.columns: expected at least 8",
        [](TensorOperands& o) { o.query_bias = o.query_bias.slice(3, 0, 7); });
  // The core refuses contents that do not fit.
  fails("row_at", [](TensorOperands& o) { o.weight.row_at = at::full({8}, 3, at::kInt); });
  fails("disjoint", [](TensorOperands& o) { o.sweeps.push_back(o.sweeps[0]); });
}

TEST(Attend, GradientsThatDoNotExistAreRefused) {
  TensorOperands o = requiring_gradients(every_term());
  const at::Tensor first =
      torch::autograd::grad({out_of(o).square().sum()}, {o.q}, {}, /*retain_graph=*/true,
                            /*create_graph=*/true)[0];
  EXPECT_THAT([&] { torch::autograd::grad({first.sum()}, {o.q}); },
              ThrowsMessage<Error>(HasSubstr("attend_backward: expected no derivative")));
}

TEST(Attend, AnOperandChangedInPlaceIsNoticed) {
  TensorOperands o = requiring_gradients(every_term());
  const at::Tensor q = o.q * 1;
  o.q = q;
  const at::Tensor out = out_of(o);
  q.zero_();
  EXPECT_ANY_THROW(torch::autograd::grad({out.sum()}, {o.k}));
}

}  // namespace
}  // namespace sextant::testing
