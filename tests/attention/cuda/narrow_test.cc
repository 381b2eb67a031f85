// With operands of 16 bits the kernels of the cuda backend differ from float64 by the roundings of
// tables, rotated rows, weights and gradients of scores to that type, and by no more.
//
// Roundings are relative, by up to e = 2^-9 (bfloat16) or 2^-12 (float16). Those of rotated rows
// and tables change scores by up to
//
//   d = e scale |weight| (2 |q| |k| + |q| |A| + |k| |B|)
//
// with the longest rows, and hence weights by a factor of e^(2 d). The bounds of bounds.h, which
// are multiples of sums of absolute terms, grow by
//
//   out         4 e + e^(2 d) - 1     weights, values, C and the sum of weights
//   gradients   8 e + e^(2 d) - 1     these, d_out, gradients of scores and what they multiply
//
// and lse by e + d.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/attention/bounds.h"
#include "tests/attention/cpu_draws.h"
#include "tests/attention/cuda/fiber_backend.h"

namespace sextant {
namespace {

// The greatest Euclidean norm of a row; 0 without rows.
double longest(const AnyView<const double>& rows) {
  const HostAnyView x(rows);
  double most = 0;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.rows; ++i) {
        double sum = 0;
        for (int64_t c = 0; c < x.columns; ++c) sum += x(b, h, i, c) * x(b, h, i, c);
        most = std::max(most, std::sqrt(sum));
      }
  return most;
}

double score_error(const Score<double>& s, double rounding) {
  double product = 2 * longest(s.q) * longest(s.k);
  if (s.q_imag) product += 2 * longest(s.q_imag) * longest(s.k);
  for (const Sweep& sweep : s.sweeps)
    if (sweep.query.rotation) product *= std::pow(sweep.query.rotation->gain, 2);
  if (s.on_query) product += longest(s.q) * longest(s.on_query);
  if (s.on_key) product += longest(s.k) * longest(s.on_key);
  const double weight = s.weight ? longest(s.weight) : 1;
  return rounding * std::abs(s.scale) * product * weight;
}

void expect_within(RandomOptions options, DType type) {
  options.grows = false;
  options.dtypes = {.q = type, .k = type, .v = type, .q_imag = type, .d_out = type};
  options.dtypes.out = DType::kFloat32;
  const double rounding = type == DType::kBfloat16 ? 0x1p-9 : 0x1p-12;
  const CpuOutcome got(options, serial_executor(), cuda::fiber_backend());
  RandomScore<double> same(options);
  same.score.scale = got.random.score.scale;
  const oracle::Result<double> exact = oracle::attend(same.score, reference_backend());
  const auto gradients =
      oracle::attend_backward(same.score, exact, same.d_out, reference_backend());
  oracle::Result<double> bounds = oracle::result_bounds(same.score, exact);
  auto grad_bounds = oracle::gradient_bounds(same.score, exact, same.d_out);

  const double d = score_error(same.score, rounding);
  const double of_weights = std::expm1(2 * d), u = 0x1p-24;
  const auto grow = [](oracle::Tensor<double>& x, double factor) {
    for (double& bound : x.data) bound *= factor;
  };
  grow(bounds.out, 1 + (4 * rounding + of_weights) / (64 * u));
  for (double& bound : bounds.lse.data) bound += rounding + d;
  const auto compare = [&](const char* name, const AnyView<const float>& x,
                           const oracle::Tensor<double>& y, const oracle::Tensor<double>& bound) {
    if (!x || y.data.empty()) return;
    const oracle::Worst worst = oracle::worst<float>(name, x, y.view(), bound.view());
    EXPECT_LE(worst.ratio, 1) << worst.where << "\n" << to_string(options);
  };
  compare("out", got.result.out, exact.out, bounds.out);
  compare("lse", got.result.lse, exact.lse, bounds.lse);
  const ScoreGrad<float>& grad = got.grad;
  const auto heads = static_cast<int64_t>(grad.sink.size());
  const AnyView<float> sink = View<float>{grad.sink.data(), 1, 1, 1, heads};
  const AnyView<float>* const views[] = {
      &grad.q,        &grad.k,      &grad.v,        &grad.q_imag,     &grad.weight,   &grad.bias,
      &grad.on_query, &grad.on_key, &grad.on_value, &grad.query_bias, &grad.key_bias, &sink};
  size_t n = 0;
  oracle::Gradients<double>::each([&](const char* name, auto member) {
    grow(grad_bounds.*member, 1 + (8 * rounding + of_weights) / (128 * u));
    compare(name, *views[n++], gradients.*member, grad_bounds.*member);
  });
}

TEST(CudaNarrow, HoldsForEveryCombinationOfOperandsInBfloat16) {
  for (uint64_t seed = 0; seed < 24; ++seed)
    expect_within(draw_options(seed, seed % 8 == 0 ? 70 : 40), DType::kBfloat16);
}

TEST(CudaNarrow, HoldsForEveryCombinationOfOperandsInFloat16) {
  for (uint64_t seed = 100; seed < 110; ++seed) {
    RandomOptions options = draw_options(seed, 40);
    options.columns = std::min<int64_t>(options.columns, 64);
    options.value_columns = std::min<int64_t>(options.value_columns, 64);
    expect_within(options, DType::kFloat16);
  }
}

}  // namespace
}  // namespace sextant
