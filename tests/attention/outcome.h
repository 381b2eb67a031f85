// Random problems for backends, with every operand in every combination at odd sizes, and the
// comparison of their results with the reference. Nothing here needs a test framework.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "tests/attention/bounds.h"
#include "tests/attention/random_score.h"

namespace sextant {

// Draws whether each operand is present, and sizes around the edges of tiles. most_rows limits
// queries and keys, and so the oracle's time.
RandomOptions draw_options(uint64_t seed, int64_t most_rows = 300);

// The same with each of the operands, d_out and out in any format.
RandomOptions draw_narrow_options(uint64_t seed, int64_t most_rows = 300);

// The same with enough rows to be split into several tasks.
RandomOptions draw_long_options(uint64_t seed, int64_t queries);

// The usual 1 / sqrt(columns), so that scores have a variance of about 1 for any number of columns;
// RandomScore's own constant scale suits few columns.
double usual_scale(const RandomOptions& options);

// A random score, and host memory for its results and gradients in float32.
struct Outcome {
  explicit Outcome(const RandomOptions& options);

  RandomScore<float> random;
  Attended<float> result;
  ScoreGrad<float> grad;
};

// Calls f(name, view) for results and then gradients, in the order of oracle::Gradients.
template <class F>
void each_view(const Outcome& outcome, F&& f) {
  const ScoreGrad<float>& grad = outcome.grad;
  const auto heads = static_cast<int64_t>(grad.sink.size());
  const AnyView<const float> sink = View<const float>{grad.sink.data(), 1, 1, 1, heads};
  f("out", AnyView<const float>(outcome.result.out));
  f("lse", AnyView<const float>(outcome.result.lse));
  f("dq", AnyView<const float>(grad.q));
  f("dk", AnyView<const float>(grad.k));
  f("dv", AnyView<const float>(grad.v));
  f("d_q_imag", AnyView<const float>(grad.q_imag));
  f("d_weight", AnyView<const float>(grad.weight));
  f("d_bias", AnyView<const float>(grad.bias));
  f("d_on_query", AnyView<const float>(grad.on_query));
  f("d_on_key", AnyView<const float>(grad.on_key));
  f("d_on_value", AnyView<const float>(grad.on_value));
  f("d_query_bias", AnyView<const float>(grad.query_bias));
  f("d_key_bias", AnyView<const float>(grad.key_bias));
  f("d_sink", sink);
  f("d_axis_bias", AnyView<const float>(grad.axis_bias));
  f("d_axis_on_query", AnyView<const float>(grad.axis_on_query));
  f("d_table_query", AnyView<const float>(grad.table_query));
  f("d_query_sink", AnyView<const float>(grad.query_sink));
}

// The values that an outcome should have, by the float64 reference, and the bounds of bounds.h.
class Expected {
 public:
  // An `out` of 16 bits may be off by one more rounding. The expected gradients are those of `out`
  // as the outcome has it.
  Expected(const RandomOptions& options, const Outcome& got);

  // Allows for the roundings of 16-bit products, which the cuda backends have: rounded_products.cc.
  // For an `out` of float32.
  void allow_rounded_products(DType type);

  // The greatest difference of each tensor, in multiples of its bound.
  std::vector<oracle::Worst> differences(const Outcome& got) const;

 private:
  static std::vector<const oracle::Tensor<double>*> in_order(
      const oracle::Result<double>& result, const oracle::Gradients<double>& gradients);

  RandomScore<double> same_;
  oracle::Result<double> exact_, result_bounds_;
  oracle::Gradients<double> gradients_, gradient_bounds_;
};

// The first element whose bits differ, with both values; empty if there is none.
std::string different_bits(const AnyView<const float>& a, const AnyView<const float>& b,
                           const std::string& name);
std::string different_bits(const Outcome& a, const Outcome& b);

}  // namespace sextant
