// attend() of float32 is near that of float64, in every precision of products.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "sextant/attention/attend.h"
#include "sextant/torch/operands.h"
#include "tests/torch/attend_cases.h"
#include "tests/torch/dense.h"
#include "tests/torch/equation.h"
#include "tests/torch/gradients.h"

namespace sextant::testing {
namespace {

TEST(Attend, Float32IsNearFloat64) {
  for (const auto& [name, operands] : cases()) {
    SCOPED_TRACE(name);
    TensorOperands wide = requiring_gradients(operands), narrow = operands;
    for (at::Tensor* x : differentiable(narrow)) {
      const bool is_key_bias = x == &narrow.key_bias;  // float64 always
      *x = (is_key_bias ? x->clone() : x->to(at::kFloat)).set_requires_grad(true);
    }
    const at::Tensor out = out_of(wide), narrow_out = out_of(narrow);
    EXPECT_EQ(narrow_out.scalar_type(), at::kFloat);
    EXPECT_LE(largest_difference(out, narrow_out), 2e-6);
    const Tensors grads = gradients_of(out, wide), narrow_grads = gradients_of(narrow_out, narrow);
    for (size_t n = 0; n < grads.size(); ++n)
      EXPECT_LE(largest_difference(grads[n], narrow_grads[n]), 2e-5) << names(wide)[n];
  }
}

at::Tensor with_precision(at::Float32MatmulPrecision precision, const TensorOperands& o) {
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
  TensorOperands o;
  for (at::Tensor* x : {&o.q, &o.k, &o.v})
    *x = normal({1, 2, kRows, kColumns}, static_cast<uint64_t>(x - &o.q) + 31);
  o.scale = 0.25;
  o.frames = frames(layout);
  o.sweeps = {{.key_ranges = visible_ranges(layout)}};
  o.farthest = kRows - 1;
  const at::Tensor distance = at::arange(kRows - 1, -1, -1, at::kDouble);
  o.bias.rows = at::stack({-0.5 * distance, -0.001 * distance});

  TensorOperands wide = requiring_gradients(o);
  const at::Tensor exact = out_of(wide);
  const Tensors wanted = gradients_of(exact, wide);
  for (const auto precision :
       {at::Float32MatmulPrecision::HIGHEST, at::Float32MatmulPrecision::HIGH}) {
    SCOPED_TRACE(static_cast<int>(precision));
    TensorOperands narrow = requiring_gradients(o);
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
    TensorOperands o;
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

}  // namespace
}  // namespace sextant::testing
