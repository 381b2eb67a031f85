// The bounds of results whose products have operands of 16 bits.
//
// Roundings are relative, by up to e = 2^-9 (bfloat16) or 2^-12 (float16). Those of rotated rows
// and tables change scores by up to
//
//   d = e scale |weight| (2 |q| |k| + |q| |A| + |k| |B|)
//
// with the longest rows, or with r by 2 e |r| |A| in place of the term of q and A, and hence
// weights by a factor of e^(2 d). The bounds of bounds.h, which are multiples of sums of absolute
// terms, grow by
//
//   out         4 e + e^(2 d) - 1     weights, values, C and the sum of weights
//   gradients   8 e + e^(2 d) - 1     these, d_out, gradients of scores and what they multiply
//
// and lse by e + d. Weights and gradients of scores below the least normal number of float16 have
// its absolute error: they count as weights of that size.
#include <algorithm>
#include <cmath>

#include "tests/attention/outcome.h"

namespace sextant {
namespace {

double score_error(const Score<double>& s, double rounding) {
  double product = 2 * oracle::longest(s.q) * oracle::longest(s.k);
  if (s.q_imag) product += 2 * oracle::longest(s.q_imag) * oracle::longest(s.k);
  for (const Sweep& sweep : s.sweeps)
    if (sweep.query.rotation) product *= std::pow(sweep.query.rotation->gain, 2);
  if (s.on_query && !s.table_query) product += oracle::longest(s.q) * oracle::longest(s.on_query);
  if (s.on_key) product += oracle::longest(s.k) * oracle::longest(s.on_key);
  const double weight = s.weight ? oracle::longest(s.weight) : 1;
  const double outside = s.on_query && s.table_query
                             ? 2 * oracle::longest(s.table_query) * oracle::longest(s.on_query)
                             : 0;
  return rounding * (std::abs(s.scale) * product * weight + outside);
}

}  // namespace

void Expected::allow_rounded_products(DType type) {
  const double rounding = type == DType::kBfloat16 ? 0x1p-9 : 0x1p-12;
  if (type == DType::kFloat16) {
    result_bounds_ = oracle::result_bounds(same_.score, exact_, oracle::kLeastFloat16Weight);
    gradient_bounds_ =
        oracle::gradient_bounds(same_.score, exact_, same_.d_out, oracle::kLeastFloat16Weight);
  }
  const double d = score_error(same_.score, rounding);
  const double of_weights = std::expm1(2 * d), u = 0x1p-24;
  const auto grow = [](oracle::Tensor<double>& x, double factor) {
    for (double& bound : x.data) bound *= factor;
  };
  grow(result_bounds_.out, 1 + (4 * rounding + of_weights) / (64 * u));
  for (double& bound : result_bounds_.lse.data) bound += rounding + d;
  oracle::Gradients<double>::each([&](const char*, auto member) {
    grow(gradient_bounds_.*member, 1 + (8 * rounding + of_weights) / (128 * u));
  });
}

}  // namespace sextant
