#include "tests/golden/attention_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sextant/base/error.h"
#include "sextant/position/spectrum.h"

namespace sextant::golden {
namespace {

// The range of keys of each query whose flags are not 0. Throws Error if they are not one range.
std::vector<KeyRange> key_ranges_of(const Doubles& flags, int64_t queries, int64_t keys) {
  std::vector<KeyRange> key_ranges;
  for (int64_t i = 0; i < queries; ++i) {
    const auto row = flags.begin() + i * keys;
    const auto seen = [](double flag) { return flag != 0; };
    const auto first = std::find_if(row, row + keys, seen);
    const auto last = std::find_if_not(first, row + keys, seen);
    if (std::any_of(last, row + keys, seen)) {
      fail("golden: mask: expected one run of keys per query, but got two");
    }
    key_ranges.push_back({first - row, last - row});
  }
  return key_ranges;
}

// q, k, v, scale, gradients and answers. Keys are visible where `mask` is not 0, or everywhere
// without a mask. The last query is at the position of the last key.
Trial plain_trial(const Golden& golden) {
  Trial trial;
  oracle::Problem<double>& p = trial.problem;
  p.q = golden.tensor("q");
  p.k = golden.tensor("k");
  p.v = golden.tensor("v");
  p.scale = golden.meta().at("scale").get<double>();
  oracle::place_plainly(p, p.k.rows - p.q.rows,
                        golden.has("mask")
                            ? key_ranges_of(golden.numbers("mask"), p.q.rows, p.k.rows)
                            : oracle::whole_ranges(p.q.rows, p.k.rows));
  trial.d_out = golden.tensor("gout");
  if (golden.has("scores")) trial.scores = golden.tensor("scores");
  trial.answers = [](const auto& result, const auto& gradients) {
    return std::map<std::string, Doubles>{{"out", result.out.data},
                                          {"dq", gradients.q.data},
                                          {"dk", gradients.k.data},
                                          {"dv", gradients.v.data}};
  };
  return trial;
}

// A matrix [h, i, j] that depends on the distance only, as one value per diagonal: rows [1, H,
// diagonals, 1]. Throws Error if the matrix is not a function of the distance.
oracle::Tensor<double> by_diagonal(const Doubles& matrix, int64_t heads, int64_t queries,
                                   int64_t keys) {
  oracle::Tensor<double> rows(1, heads, queries + keys - 1, 1);
  std::fill(rows.data.begin(), rows.data.end(), std::numeric_limits<double>::quiet_NaN());
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t j = 0; j < keys; ++j) {
        const double x = matrix[static_cast<size_t>((h * queries + i) * keys + j)];
        double& row = rows(0, h, queries - 1 - i + j, 0);
        if (std::isnan(row)) row = x;
        if (std::abs(row - x) > 1e-14 * std::max(1.0, std::abs(x))) {
          fail("golden: bias: expected a function of the distance, but got another");
        }
      }
    }
  }
  return rows;
}

Trial biased(const Golden& golden) {
  Trial trial = plain_trial(golden);
  oracle::Problem<double>& p = trial.problem;
  p.bias.rows = by_diagonal(golden.numbers("bias"), p.q.heads, p.q.rows, p.k.rows);
  // The gradients of trained slopes: the bias is -slope * |distance|.
  trial.answers = [before = trial.answers, diagonals = p.diagonals](const auto& result,
                                                                    const auto& gradients) {
    auto answers = before(result, gradients);
    const auto& d_bias = gradients.bias;
    for (int64_t h = 0; h < d_bias.heads; ++h) {
      double left = 0, right = 0;
      for (int64_t n = 0; n < d_bias.rows; ++n) {
        const int64_t distance = diagonals.distance(n);
        (distance >= 0 ? left : right) -=
            d_bias(0, h, n, 0) * static_cast<double>(std::abs(distance));
      }
      answers["d_slopes"].push_back(left + right);
      answers["d_slopes_left"].push_back(left);
      answers["d_slopes_right"].push_back(right);
    }
    return answers;
  };
  return trial;
}

// [T, heads, D] -> [1, heads, T, D], and the inverse.
oracle::Tensor<double> heads_first(const Doubles& x, int64_t rows, int64_t heads) {
  oracle::Tensor<double> y(1, heads, rows, static_cast<int64_t>(x.size()) / rows / heads);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t c = 0; c < y.columns; ++c) {
        y(0, h, i, c) = x[static_cast<size_t>((i * heads + h) * y.columns + c)];
      }
    }
  }
  return y;
}
Doubles rows_first(const oracle::Tensor<double>& x) {
  Doubles y;
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t h = 0; h < x.heads; ++h) {
      for (int64_t c = 0; c < x.columns; ++c) y.push_back(x(0, h, i, c));
    }
  }
  return y;
}

// gpt-oss: one learned logit per head in the denominator.
Trial learned_sinks(const Golden& golden) {
  const auto& shape = golden.shape("Q");  // [T, key heads, query heads per key head, D]
  const int64_t rows = shape[0], key_heads = shape[1], heads = shape[1] * shape[2];
  Trial trial;
  oracle::Problem<double>& p = trial.problem;
  p.q = heads_first(golden.numbers("Q"), rows, heads);
  p.k = heads_first(golden.numbers("K"), rows, key_heads);
  p.v = heads_first(golden.numbers("V"), rows, key_heads);
  p.sink = golden.numbers("S");
  p.scale = golden.meta().at("scale").get<double>();
  oracle::place_plainly(p, 0, oracle::causal_runs(rows, 0));
  trial.d_out = heads_first(golden.numbers("gout"), rows, heads);
  trial.answers = [](const auto& result, const auto& gradients) {
    return std::map<std::string, Doubles>{{"out", rows_first(result.out)},
                                          {"dQ", rows_first(gradients.q)},
                                          {"dK", rows_first(gradients.k)},
                                          {"dV", rows_first(gradients.v)},
                                          {"dS", gradients.sink.data}};
  };
  return trial;
}

// RoPE with frequencies from our own formula, which must equal those of the file.
Trial rope(const Golden& golden, Pairing pairing, int64_t sense = 1) {
  Trial trial = plain_trial(golden);
  oracle::OwnedSweep& sweep = trial.problem.sweeps.at(0);
  const Spectrum spectrum =
      rotary({.dim = golden.meta().value("rotary_dim", trial.problem.q.columns),
              .base = golden.meta().value("base", 10000.0),
              .pairing = pairing});
  Doubles frequencies;
  for (const auto& pair : spectrum.pairs)
    frequencies.push_back(static_cast<double>(pair.frequency));
  if (const std::string wrong =
          difference("inv_freq", frequencies, golden.numbers("inv_freq"), 1e-15);
      !wrong.empty()) {
    fail("golden: " + wrong);
  }
  sweep.rotation = rotation(spectrum);
  sweep.query_rotary_positions = golden.integers("pos_q");
  sweep.key_rotary_positions = golden.integers("pos_k");
  int64_t farthest = 0;
  for (auto* positions : {&sweep.query_rotary_positions, &sweep.key_rotary_positions}) {
    for (int64_t& position : *positions) {
      position *= sense;
      farthest = std::max(farthest, std::abs(position));
    }
  }
  // The files' angles are products in float64, with an error of half an ulp of the angle.
  trial.tolerance += 0x1p-52 * static_cast<double>(farthest);
  return trial;
}

Trial half_split(const Golden& golden) { return rope(golden, Pairing::kHalfSplit); }
Trial interleaved(const Golden& golden) { return rope(golden, Pairing::kInterleaved); }
Trial clockwise(const Golden& golden) { return rope(golden, Pairing::kHalfSplit, -1); }

constexpr AttentionCase kCases[] = {
    {"nope_causal", plain_trial},
    {"window_causal_w4", plain_trial},
    {"window_chunked_causal_c4", plain_trial},
    {"alibi_causal_decode_h8", biased},
    {"alibi_bidirectional_symmetric", biased},
    {"sinks_learned_gptoss_w0", learned_sinks},
    {"rope_neox_full", half_split},
    {"rope_neox_offset_gqa", half_split},
    {"rope_gptj_partial", interleaved},
    {"rope_meta_complex", interleaved},
    {"rope_clockwise_nanochat", clockwise},
};

}  // namespace

std::span<const AttentionCase> attention_cases() { return kCases; }

}  // namespace sextant::golden
