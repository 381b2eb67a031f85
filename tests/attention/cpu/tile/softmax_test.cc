// Tiles of softmax alone, on every target: weights and their panel, the merge of states, and the
// gradient, each beside its formula in float64.
#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/attention/cpu/tile/softmax_test.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/tile/softmax_grad-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// dropped[row * kUnit + column]; null: all weights are kept.
HWY_ATTR void put_dropped(const uint8_t* dropped, int64_t rows, DroppedColumns& to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < kUnit; j += 8) {
      to.row(i)[j / 8] = 0;
      for (int64_t n = 0; n < 8; ++n)
        to.row(i)[j / 8] |= static_cast<uint8_t>(dropped[i * kUnit + j + n] << n);
    }
}

HWY_ATTR void softmax_of(int64_t rows, KeyRange columns, const uint8_t* dropped, float* scores,
                         float* row_max, float* row_sum, float* panel) {
  if (!dropped) {
    KeepAll keep;
    return softmax_strip(rows, columns, scores, row_max, panel, keep);
  }
  Drop keep;
  put_dropped(dropped, rows, keep.columns());
  softmax_strip(rows, columns, scores, row_max, panel, keep);
  keep.write_sums(rows, row_sum);
}

void merge_states(int64_t rows, int64_t width16, const SoftmaxState& part,
                  const SoftmaxState& all) {
  merge(rows, width16, part, all);
}

HWY_ATTR void gradient_of(int64_t rows, KeyRange columns, const uint8_t* dropped, float kept_factor,
                          float* weights, float* grads, const float* lse, const float* mean) {
  DroppedColumns bits;
  const GradStrip strip = {weights, grads, nullptr, nullptr,
                           nullptr, lse,   mean,    dropped ? &bits : nullptr};
  if (!dropped) return differentiate_softmax(rows, columns, strip);
  put_dropped(dropped, rows, bits);
  differentiate_dropout(rows, columns, kept_factor, strip);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/attention/every_target.h"

namespace sextant::cpu {
namespace {

HWY_EXPORT(softmax_of);
HWY_EXPORT(merge_states);
HWY_EXPORT(gradient_of);

constexpr KeyRange kColumns = {16, 80};
constexpr int64_t kWidth = 32;

// [kStrip][kScoreStride] numbers, -infinity in some places if `hides`.
std::vector<float> random_lines(unsigned seed, bool hides) {
  std::mt19937 random(seed);
  std::normal_distribution<float> number(0, 3);
  std::vector<float> lines(kStrip * kScoreStride);
  for (float& x : lines) x = hides && random() % 4 == 0 ? -kInfinity : number(random);
  return lines;
}

std::vector<uint8_t> random_dropped() {
  std::mt19937 random(5);
  std::vector<uint8_t> dropped(kStrip * kUnit);
  for (uint8_t& bit : dropped) bit = random() % 3 == 0 ? 1 : 0;
  return dropped;
}

bool is_dropped(const std::vector<uint8_t>& dropped, int64_t row, int64_t column) {
  return !dropped.empty() && dropped[static_cast<size_t>(row * kUnit + column)] != 0;
}

void expect_near(double got, double expected) {
  EXPECT_NEAR(got, expected, 2e-6 * std::max(1.0, std::abs(expected)));
}

void expect_weights(int64_t rows, const std::vector<uint8_t>& dropped) {
  std::vector<float> scores = random_lines(1, true), panel(kUnit * kStrip, -1);
  std::fill_n(scores.begin() + kScoreStride, kScoreStride, -kInfinity);  // row 1 sees nothing
  const std::vector<float> given = scores;
  float row_max[kStrip], row_sum[kStrip];
  HWY_DYNAMIC_DISPATCH(softmax_of)
  (rows, kColumns, dropped.empty() ? nullptr : dropped.data(), scores.data(), row_max, row_sum,
   panel.data());
  for (int64_t i = 0; i < kStrip; ++i) {
    const float* const line = given.data() + i * kScoreStride;
    const float most = *std::max_element(line + kColumns.first, line + kColumns.last);
    if (i < rows) {
      EXPECT_EQ(row_max[i], most);
    }
    double sum = 0;
    for (int64_t j = kColumns.first; j < kColumns.last; ++j) {
      const float got = panel[static_cast<size_t>(j * kStrip + i)];
      const double weight = most == -kInfinity || i >= rows ? 0 : std::exp(double{line[j]} - most);
      expect_near(got, is_dropped(dropped, i, j) ? 0 : weight);
      if (i < rows) {
        EXPECT_EQ(got, scores[static_cast<size_t>(i * kScoreStride + j)]);
      }
      sum += weight;
    }
    if (i < rows && !dropped.empty()) expect_near(row_sum[i], sum);
  }
}

TEST(SoftmaxTile, WeightsAreExponentialsOfScoresRelativeToTheLargest) {
  on_every_target([] {
    for (const int64_t rows : {1, 3, 8}) {
      expect_weights(rows, {});
      expect_weights(rows, random_dropped());
    }
  });
}

// A state of the given scores, [rows][keys], and values, [keys][kWidth], in float64.
struct State {
  std::vector<float> row_max, row_sum, out;

  State(const std::vector<std::vector<double>>& scores, const std::vector<double>& values,
        KeyRange keys) {
    for (const std::vector<double>& row : scores) {
      double most = -kInfinity, sum = 0;
      std::vector<double> mean(kWidth);
      for (int64_t j = keys.first; j < keys.last; ++j)
        most = std::max(most, row[static_cast<size_t>(j)]);
      for (int64_t j = keys.first; j < keys.last && most > -kInfinity; ++j) {
        const double weight = std::exp(row[static_cast<size_t>(j)] - most);
        sum += weight;
        for (int64_t c = 0; c < kWidth; ++c)
          mean[static_cast<size_t>(c)] += weight * values[static_cast<size_t>(j * kWidth + c)];
      }
      row_max.push_back(static_cast<float>(most));
      row_sum.push_back(static_cast<float>(sum));
      out.insert(out.end(), mean.begin(), mean.end());
    }
  }
  SoftmaxState view() { return {row_max.data(), row_sum.data(), out.data()}; }
};

TEST(SoftmaxTile, StatesOfPartsOfTheKeysMergeToThatOfAll) {
  constexpr int64_t kKeys = 24;
  std::mt19937 random(2);
  std::normal_distribution<double> number(0, 3);
  std::vector<std::vector<double>> scores(kStrip, std::vector<double>(kKeys));
  std::vector<double> values(kKeys * kWidth);
  for (std::vector<double>& row : scores)
    for (double& x : row) x = static_cast<float>(number(random));
  for (double& x : values) x = number(random);
  std::fill_n(scores[0].begin(), kKeys / 2, -double{kInfinity});  // sees the second part alone
  std::fill_n(scores[1].begin() + kKeys / 2, kKeys / 2, -double{kInfinity});
  std::fill(scores[2].begin(), scores[2].end(), -double{kInfinity});
  on_every_target([&] {
    State first(scores, values, {0, kKeys / 2}), second(scores, values, {kKeys / 2, kKeys});
    const State whole(scores, values, {0, kKeys});
    HWY_DYNAMIC_DISPATCH(merge_states)(kStrip, kWidth, second.view(), first.view());
    EXPECT_EQ(first.row_max, whole.row_max);
    for (size_t i = 0; i < first.row_sum.size(); ++i)
      expect_near(first.row_sum[i], whole.row_sum[i]);
    for (size_t n = 0; n < first.out.size(); ++n) expect_near(first.out[n], whole.out[n]);
  });
}

void expect_gradient(const std::vector<uint8_t>& dropped) {
  constexpr float kKeptFactor = 1.5F;
  std::vector<float> weights = random_lines(3, true), grads = random_lines(4, false);
  const std::vector<float> scores = weights, given = grads;
  std::vector<float> lse(kStrip), mean(kStrip);
  for (size_t i = 0; i < lse.size(); ++i) {
    lse[i] = i == 1 ? kInfinity : 9 + static_cast<float>(i);  // query 1 sees nothing
    mean[i] = 0.25F * static_cast<float>(i);
  }
  HWY_DYNAMIC_DISPATCH(gradient_of)
  (kStrip, kColumns, dropped.empty() ? nullptr : dropped.data(), kKeptFactor, weights.data(),
   grads.data(), lse.data(), mean.data());
  for (int64_t i = 0; i < kStrip; ++i)
    for (int64_t j = kColumns.first; j < kColumns.last; ++j) {
      const auto at = static_cast<size_t>(i * kScoreStride + j), row = static_cast<size_t>(i);
      const double m = dropped.empty() ? 1 : is_dropped(dropped, i, j) ? 0 : kKeptFactor;
      const double p = std::exp(double{scores[at]} - lse[row]);
      expect_near(weights[at], p * m);
      expect_near(grads[at], p * (m * given[at] - mean[row]));
    }
}

TEST(SoftmaxTile, GradientsFollowTheFormula) {
  on_every_target([] {
    expect_gradient({});
    expect_gradient(random_dropped());
  });
}

}  // namespace
}  // namespace sextant::cpu
#endif
