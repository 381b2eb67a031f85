// Biases by distance, windows and sinks, without position vectors.
#include <algorithm>
#include <cmath>

#include "sextant/base/error.h"
#include "tests/golden/trial.h"

namespace sextant::golden {
namespace {

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

// BLOOM's bias is proportional to the key's index among the unpadded tokens; for one query this
// equals ALiBi up to a constant. Here padded queries see no key; the file's values for them are
// meaningless.
Trial left_padded(const Golden& golden) {
  Trial trial = plain_trial(golden);
  oracle::Problem<double>& p = trial.problem;
  const auto real = golden.integers("attention_mask");
  const Doubles slopes = golden.numbers("slopes");
  p.bias.rows = {1, p.q.heads, p.diagonals.count, 1};
  for (int64_t h = 0; h < p.q.heads; ++h) {
    for (int64_t n = 0; n < p.diagonals.count; ++n) {
      p.bias.rows(0, h, n, 0) =
          -slopes[static_cast<size_t>(h)] * static_cast<double>(p.diagonals.distance(n));
    }
  }
  p.sweeps.at(0).key_ranges.clear();
  for (int64_t b = 0; b < p.q.batch; ++b) {
    const auto row = real.begin() + b * p.q.rows;
    const int64_t first = std::find(row, row + p.q.rows, 1) - row;
    for (int64_t i = 0; i < p.q.rows; ++i) p.sweeps[0].key_ranges.push_back({first, i + 1});
  }
  trial.scores = {};
  trial.answers = [real, padded = golden.tensor("out")](const auto& result, const auto&) {
    oracle::Tensor<double> out = result.out;
    for (int64_t n = 0; n < static_cast<int64_t>(out.data.size()); ++n) {
      const int64_t b = n / (out.columns * out.rows * out.heads);
      const int64_t i = n / out.columns % out.rows;
      if (real[static_cast<size_t>(b * out.rows + i)] == 0) {
        out.data[static_cast<size_t>(n)] = padded.data[static_cast<size_t>(n)];
      }
    }
    return std::map<std::string, Doubles>{{"out", out.data}};
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

// gpt-oss: one learned logit per head in the denominator; a window of w keys, or all keys for w =
// 0.
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
  std::vector<KeyRange> key_ranges = oracle::causal_runs(rows, 0);
  const std::string window = golden.name().substr(golden.name().rfind('w') + 1);
  if (const int64_t w = std::stoll(window); w > 0) {
    for (KeyRange& run : key_ranges) run.first = std::max<int64_t>(0, run.last - w);
  }
  oracle::place_plainly(p, 0, std::move(key_ranges));
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

}  // namespace

const std::vector<Family>& bias_families() {
  static const std::vector<Family> families = {
      {"nope_", plain_trial},
      {"window_causal_", plain_trial},
      {"window_bidirectional_", plain_trial},
      {"window_chunked_", plain_trial},
      {"window_segments_", plain_trial},
      {"alibi_causal_", biased},
      {"alibi_bidirectional_", biased},
      {"alibi_slope_gradient", biased},
      {"alibi_bloom_leftpad", left_padded},
      {"sandwich_causal", biased},
      {"sandwich_bidirectional", biased},
      {"sinks_learned_", learned_sinks},
  };
  return families;
}

}  // namespace sextant::golden
