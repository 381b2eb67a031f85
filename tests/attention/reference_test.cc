// The oracle's gradients agree with finite differences for every operand, and its edge cases are
// right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "sextant/attention/attend.h"
#include "tests/attention/random_score.h"

namespace sextant {
namespace {

using Operand = View<const double>;

// Adds t * direction to all elements of the operand; the direction is drawn from `seed`.
void move(const Operand& operand, double t, uint64_t seed) {
  const HostView of(operand);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (int64_t b = 0; b < of.batch; ++b)
    for (int64_t h = 0; h < of.heads; ++h)
      for (int64_t i = 0; i < of.rows; ++i)
        for (int64_t c = 0; c < of.columns; ++c)
          const_cast<double&>(of(b, h, i, c)) += t * normal(random);
}

// The directional derivative that `grad` implies for the same direction.
double along(const View<double>& gradient, uint64_t seed) {
  const HostView grad(gradient);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  double sum = 0;
  for (int64_t b = 0; b < grad.batch; ++b)
    for (int64_t h = 0; h < grad.heads; ++h)
      for (int64_t i = 0; i < grad.rows; ++i)
        for (int64_t c = 0; c < grad.columns; ++c) sum += normal(random) * grad(b, h, i, c);
  return sum;
}

double loss(RandomScore<double>& one) {
  const Attended<double> result = one.new_attended();
  attend(one.score, result, reference_backend(), serial_executor());
  const HostAnyView out(result.out);
  const HostAnyView d_out(one.d_out);
  double sum = 0;
  for (int64_t b = 0; b < result.out.batch; ++b)
    for (int64_t h = 0; h < result.out.heads; ++h)
      for (int64_t i = 0; i < result.out.rows; ++i)
        for (int64_t c = 0; c < result.out.columns; ++c) sum += d_out(b, h, i, c) * out(b, h, i, c);
  return sum;
}

// Central differences with one Richardson extrapolation: the error is of order h^4.
double difference(RandomScore<double>& one, const Operand& of, uint64_t seed) {
  const auto slope = [&](double h) {
    move(of, h, seed);
    const double above = loss(one);
    move(of, -2 * h, seed);
    const double below = loss(one);
    move(of, h, seed);
    return (above - below) / (2 * h);
  };
  return (4 * slope(5e-4) - slope(1e-3)) / 3;
}

void expect_gradients_agree(const RandomOptions& options) {
  SCOPED_TRACE(to_string(options));
  RandomScore<double> one(options);
  const Attended<double> result = one.new_attended();
  attend(one.score, result, reference_backend(), serial_executor());
  const ScoreGrad<double> grad = one.new_grad();
  attend_backward(one.score, as_const(result), one.d_out, grad, reference_backend(),
                  serial_executor());
  const Score<double>& s = one.score;
  const View<double> d_sink = {grad.sink.data(), 1, 1, 1, static_cast<int64_t>(grad.sink.size())};
  const Operand sink = {s.sink.data(), 1, 1, 1, static_cast<int64_t>(s.sink.size())};
  const std::tuple<const char*, Operand, View<double>> operands[] = {
      {"q", s.q.as<double>(), grad.q.as<double>()},
      {"k", s.k.as<double>(), grad.k.as<double>()},
      {"v", s.v.as<double>(), grad.v.as<double>()},
      {"q_imag", s.q_imag.as<double>(), grad.q_imag.as<double>()},
      {"weight", s.weight, grad.weight.as<double>()},
      {"bias", s.bias, grad.bias.as<double>()},
      {"on_query", s.on_query, grad.on_query.as<double>()},
      {"on_key", s.on_key, grad.on_key.as<double>()},
      {"on_value", s.on_value, grad.on_value.as<double>()},
      {"query_bias", s.query_bias, grad.query_bias.as<double>()},
      {"key_bias", s.key_bias, grad.key_bias.as<double>()},
      {"axis_bias", s.axis_bias, grad.axis_bias.as<double>()},
      {"axis_on_query", s.axis_on_query, grad.axis_on_query.as<double>()},
      {"table_query", s.table_query, grad.table_query.as<double>()},
      {"query_sink", s.query_sink, grad.query_sink.as<double>()},
      {"sink", sink, d_sink}};
  for (const auto& [name, of, gradient] : operands)
    if (of && of.columns > 0) {
      const double expected = difference(one, of, 11);
      EXPECT_NEAR(along(gradient, 11), expected, 1e-7 * std::max(1.0, std::abs(expected))) << name;
    }
}

TEST(Reference, GradientsAgreeWithFiniteDifferences) {
  using KeyRanges = RandomOptions::KeyRanges;
  const std::vector<RandomOptions> cases = {
      {},
      {.key_ranges = KeyRanges::kWhole, .bias = true, .sink = true},
      {.key_ranges = KeyRanges::kWindow,
       .on_query = true,
       .on_key = true,
       .on_value = true,
       .clip = 2},
      {.key_ranges = KeyRanges::kWhole,
       .bias = true,
       .on_query = true,
       .on_value = true,
       .shared_tables = true},
      {.sweeps = 2, .rotated = true, .offset = true, .axes = 2, .bias = true},
      {.rotated = true, .grows = true},
      {.packed = 2, .rotated = true, .on_query = true, .clip = 3, .mask = true},
      {.key_ranges = KeyRanges::kRagged,
       .sweeps = 3,
       .weight = true,
       .bias = true,
       .odd_strides = true},
      {.key_ranges = KeyRanges::kWhole, .rotated = true, .weight = true, .q_imag = true},
      {.key_ranges = KeyRanges::kWindow, .query_bias = true, .odd_strides = true},
      {.packed = 2, .weight = true, .bias = true, .query_bias = true},
      {.packed = 2, .key_bias = true, .sink = true, .odd_strides = true},
      {.key_ranges = KeyRanges::kRagged, .sweeps = 2, .key_bias = true, .mask = true},
      {.key_ranges = KeyRanges::kWhole, .rotated = true, .bias = true, .sink = true, .softcap = 2},
      {.packed = 2,
       .weight = true,
       .bias = true,
       .query_bias = true,
       .key_bias = true,
       .q_imag = true,
       .softcap = 1.5},
      {.on_query = true, .on_key = true, .on_value = true, .clip = 2, .softcap = 1, .dropout = 0.4},
      {.key_ranges = KeyRanges::kWhole, .bias = true, .sink = true, .dropout = 0.5},
      {.key_ranges = KeyRanges::kRagged,
       .sweeps = 2,
       .packed = 2,
       .rotated = true,
       .weight = true,
       .on_value = true,
       .key_bias = true,
       .mask = true,
       .dropout = 0.2},
      {.key_ranges = KeyRanges::kWhole,
       .bias = true,
       .position_axes = 2,
       .axis_bias = true,
       .axis_on_query = true},
      {.packed = 2,
       .rotated = true,
       .on_query = true,
       .clip = 2,
       .position_axes = 3,
       .axis_bias = true,
       .axis_on_query = true,
       .table_query = 5,
       .query_sink = true},
      {.weight = true,
       .on_query = true,
       .shared_tables = true,
       .q_imag = true,
       .position_axes = 3,
       .axis_on_query = true,
       .table_query = 3,
       .softcap = 1.5},
      {.key_bias = true, .position_axes = 1, .axis_on_query = true, .query_sink = true},
      {.heads = 3, .key_heads = 1, .columns = 1, .value_columns = 1, .bias = true}};
  for (RandomOptions options : cases)
    for (options.seed = 1; options.seed <= 3; ++options.seed) expect_gradients_agree(options);
}

TEST(Reference, AQueryThatSeesNothingGivesZerosAndNoGradient) {
  RandomScore<double> one({.key_ranges = RandomOptions::KeyRanges::kRagged, .bias = true});
  std::vector<sextant::KeyRange> nothing(7, sextant::KeyRange{3, 3});
  one.score.sweeps[0].key_ranges = nothing.data();
  const Attended<double> result = one.new_attended();
  attend(one.score, result, reference_backend(), serial_executor());
  const ScoreGrad<double> grad = one.new_grad();
  attend_backward(one.score, as_const(result), one.d_out, grad, reference_backend(),
                  serial_executor());
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t i = 0; i < 7; ++i) {
        EXPECT_EQ(HostView(result.lse)(b, h, i, 0), -std::numeric_limits<double>::infinity());
        for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(HostAnyView(result.out)(b, h, i, c), 0);
        for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(HostAnyView(grad.q)(b, h, i, c), 0);
      }
  EXPECT_EQ(along(grad.k.as<double>(), 3), 0);
  EXPECT_EQ(along(grad.bias.as<double>(), 3), 0);
}

TEST(Reference, OneVisibleKeyGivesItsValue) {
  RandomScore<double> one({.bias = true});
  std::vector<sextant::KeyRange> own;
  for (int64_t i = 0; i < 7; ++i) own.push_back({i, i + 1});
  one.score.sweeps[0].key_ranges = own.data();
  const Attended<double> result = one.new_attended();
  attend(one.score, result, reference_backend(), serial_executor());
  for (int64_t i = 0; i < 7; ++i)
    for (int64_t c = 0; c < 5; ++c)
      EXPECT_DOUBLE_EQ(HostAnyView(result.out)(1, 3, i, c), HostAnyView(one.score.v)(1, 1, i, c));
}

// The weights of a softcap and a bias, from the formula: the bias is added after the cap.
TEST(Reference, SoftcapLimitsTheScaledProductAlone) {
  RandomScore<double> one({.queries = 6, .keys = 6, .value_columns = 6, .bias = true});
  one.score.softcap = 0.8;
  const HostView units(one.new_view(2, 2, 6, 6));
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t j = 0; j < 6; ++j) units(b, h, j, j) = 1;
  one.score.v = as_const<double>(units);
  const Attended<double> result = one.new_attended();
  attend(one.score, result, reference_backend(), serial_executor());
  const HostAnyView q(one.score.q), k(one.score.k);
  for (int64_t i = 0; i < 6; ++i) {
    std::vector<double> weights;
    double sum = 0;
    for (int64_t j = 0; j <= i; ++j) {
      double product = 0;
      for (int64_t c = 0; c < 8; ++c) product += q(1, 3, i, c) * k(1, 1, j, c);
      const int64_t diagonal = one.score.diagonals.index(i - j);
      const double bias = HostView(one.score.bias)(0, 3, diagonal, 0);
      weights.push_back(std::exp(0.8 * std::tanh(one.score.scale * product / 0.8) + bias));
      sum += weights.back();
    }
    for (int64_t j = 0; j <= i; ++j)
      EXPECT_NEAR(HostAnyView(result.out)(1, 3, i, j), weights[static_cast<size_t>(j)] / sum,
                  1e-12);
  }
}

}  // namespace
}  // namespace sextant
