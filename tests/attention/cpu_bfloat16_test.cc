// The cpu-bf16 backend differs from float64 by the roundings to bfloat16 and by no more.
//
// Roundings are relative, by up to e = 2^-9. Rounded are the weights, hence their sum, the values,
// and both sides of the products of queries and keys; the latter changes scores by up to d = 2 e
// scale
// weight| max |q| max |k|. The bounds are therefore
//
//   out   (3 e + e^(2 d) - 1) sum_j p_ij w_ij      lse   e + d
//
// besides the float32 bounds of bounds.h. If q, k and v are bfloat16, the scale is a power of two
// and nothing is rotated, only weights are rounded: the bounds are 2 e and e.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/attention/bounds.h"
#include "tests/attention/cpu_draws.h"
#include "tests/attention/every_target.h"

namespace sextant {
namespace {

constexpr double kRounding = 0x1p-9;
constexpr double kFloatRoundings = 64 * 0x1p-24;  // from bounds.h, of `out`: times sum p w

double score_error(const Score<double>& s) {
  double most = std::abs(s.scale) * oracle::longest(s.q) * oracle::longest(s.k);
  if (s.q_imag) most *= 1 + oracle::longest(s.q_imag) / oracle::longest(s.q);
  for (const Sweep& sweep : s.sweeps)
    if (sweep.query.rotation) most *= std::pow(sweep.query.rotation->gain, 2);
  double weight = s.weight ? 0 : 1;
  for (int64_t h = 0; h < s.weight.heads; ++h)
    for (int64_t r = 0; r < s.weight.rows; ++r)
      weight = std::max(weight, std::abs(HostView(s.weight)(0, h, r, 0)));
  return 2 * kRounding * most * weight;
}

struct Bounds {
  double out, lse;  // `out` is relative to sum p w
};
Bounds all_rounded(const Score<double>& s) {
  const double d = score_error(s);
  return {3.01 * kRounding + std::expm1(2 * d), kRounding + d};
}
Bounds weights_rounded(const Score<double>&) { return {2.01 * kRounding, kRounding}; }

void expect_within(RandomOptions options, Bounds (*bounds_of)(const Score<double>&),
                   const Executor& executor = serial_executor()) {
  options.dtypes.out = DType::kFloat32;
  RandomScore<float> random(options);
  RandomScore<double> same(options);
  random.score.scale = same.score.scale = 0.25;
  const Attended<float> got = random.new_attended();
  attend(random.score, got, cpu_bfloat16_backend(), executor);
  const oracle::Result<double> exact = oracle::attend(same.score, reference_backend());
  oracle::Result<double> bounds = oracle::result_bounds(same.score, exact);
  const Bounds more = bounds_of(same.score);
  for (double& bound : bounds.out.data) bound *= 1 + more.out / kFloatRoundings;
  for (double& bound : bounds.lse.data) bound += more.lse;
  const auto compare = [&](const char* name, const AnyView<const float>& x,
                           const oracle::Tensor<double>& y, const oracle::Tensor<double>& bound) {
    const oracle::Worst worst = oracle::worst<float>(name, x, y.view(), bound.view());
    EXPECT_LE(worst.ratio, 1) << worst.where << "\n" << to_string(options);
  };
  compare("out", got.out, exact.out, bounds.out);
  compare("lse", got.lse, exact.lse, bounds.lse);
}

RandomOptions of_bfloat16(RandomOptions o) {
  o.rotated = o.q_imag = false;
  o.dtypes = {.q = DType::kBfloat16, .k = DType::kBfloat16, .v = DType::kBfloat16};
  return o;
}

TEST(CpuBfloat16, HoldsForEveryCombinationOfOperands) {
  const auto pool = make_thread_pool(2);
  for (uint64_t seed = 0; seed < 100; ++seed)
    expect_within(draw_narrow_options(seed), all_rounded,
                  seed % 2 == 0 ? serial_executor() : *pool);
}

TEST(CpuBfloat16, RoundsOnlyWeightsWhereOperandsAreBfloat16) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    expect_within(of_bfloat16(draw_options(seed)), weights_rounded);
  }
}

TEST(CpuBfloat16, HoldsForEveryLengthAndHeadSize) {
  for (const int64_t keys : {9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 255, 256, 257, 300})
    for (const int64_t columns : {1, 2, 3, 15, 16, 33, 64, 100}) {
      RandomOptions o = {.batch = 1, .heads = 2, .key_heads = 1, .queries = keys, .keys = keys};
      o.columns = columns;
      o.value_columns = columns == 3 ? 0 : columns + keys % 2;
      o.key_ranges = static_cast<RandomOptions::KeyRanges>((keys + columns) % 5);
      o.seed = static_cast<uint64_t>(keys * 1000 + columns);
      expect_within(of_bfloat16(o), weights_rounded);
    }
}

TEST(CpuBfloat16, HoldsOnEverySimdTarget) {
  on_every_target([] {
    for (uint64_t seed = 1000; seed < 1025; ++seed) {
      expect_within(draw_narrow_options(seed, 70), all_rounded);
      expect_within(of_bfloat16(draw_options(seed, 70)), weights_rounded);
    }
  });
}

// A causal sequence of one head, whose values are 1 except where a test changes them.
class Text {
 public:
  static constexpr int64_t kRows = 100;

  Text() : k_(kRows * kColumns), v_(kRows * kColumns, 1), out_(kRows * kColumns), lse_(kRows) {
    for (int64_t i = 0; i < kRows; ++i) key_ranges_.push_back({0, i + 1});
    for (size_t n = 0; n < k_.size(); ++n) k_[n] = static_cast<float>(n % 7) - 3;
  }
  float& key(int64_t row) { return k_[static_cast<size_t>(row * kColumns)]; }
  float& value(int64_t row) { return v_[static_cast<size_t>(row * kColumns)]; }
  float out(int64_t row) const { return out_[static_cast<size_t>(row * kColumns)]; }
  void attend() {
    Score<float> s;
    const std::vector<float> queries(k_.size(), 0.25F);
    s.q = view(queries);
    s.k = view(k_);
    s.v = view(v_);
    s.frames = {{.queries = kRows, .keys = kRows}};
    s.sweeps = {{.key_ranges = key_ranges_.data()}};
    const View<float> out = {out_.data(), 1, 1, kRows, kColumns, 0, 0, kColumns};
    sextant::attend<float>(s, {out, {lse_.data(), 1, 1, kRows, 1, 0, 0, 1}}, cpu_bfloat16_backend(),
                           serial_executor());
  }

 private:
  static constexpr int64_t kColumns = 16;
  static View<const float> view(const std::vector<float>& x) {
    return {x.data(), 1, 1, kRows, kColumns, 0, 0, kColumns};
  }
  std::vector<float> k_, v_, out_, lse_;
  std::vector<KeyRange> key_ranges_;
};

TEST(CpuBfloat16, WeightsAddUpToOne) {
  Text text;
  text.attend();
  for (int64_t i = 0; i < Text::kRows; ++i) EXPECT_NEAR(text.out(i), 1, 4 * 0x1p-24) << i;
}

TEST(CpuBfloat16, NumbersThatAreNoneReachOnlyWhoSeesThem) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Text keys, values;
  keys.key(60) = values.value(60) = kNan;
  keys.attend();
  values.attend();
  for (int64_t i = 0; i < Text::kRows; ++i) {
    EXPECT_EQ(std::isnan(keys.out(i)), i >= 60) << i;
    EXPECT_EQ(std::isnan(values.out(i)), i >= 60) << i;
  }
}

TEST(CpuBfloat16, ValuesThatBfloat16CannotHoldDoNotBecomeInfinite) {
  Text text;
  text.value(99) = std::numeric_limits<float>::max();
  text.attend();
  EXPECT_TRUE(std::isfinite(text.out(99)));
  EXPECT_GT(text.out(99), 1e30F);
  EXPECT_NEAR(text.out(98), 1, 4 * 0x1p-24);
}

TEST(CpuBfloat16, BitsDoNotDependOnThreads) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    RandomScore<float> random(draw_narrow_options(seed));
    const Attended<float> one = random.new_attended(), four = random.new_attended();
    attend(random.score, one, cpu_bfloat16_backend(), serial_executor());
    attend(random.score, four, cpu_bfloat16_backend(), *make_thread_pool(4));
    expect_same_bits(one.out, four.out, "out");
    expect_same_bits(one.lse, four.lse, "lse");
  }
}

}  // namespace
}  // namespace sextant
