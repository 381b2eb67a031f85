#include "tests/golden/trial.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sextant/base/error.h"

namespace sextant::golden {

std::optional<Family> family_of(std::string_view name) {
  std::optional<Family> best;
  for (const auto* families : {&rotary_families(), &bias_families(), &product_families(),
                               &relative_families(), &deberta_families()}) {
    for (const Family& family : *families) {
      if (!name.starts_with(family.prefix)) continue;
      if (!best || family.prefix.size() > best->prefix.size()) best = family;
    }
  }
  return best;
}

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
  if (golden.has("gout")) trial.d_out = golden.tensor("gout");
  if (golden.has("scores")) trial.scores = golden.tensor("scores");
  trial.answers = [](const auto& result, const auto& gradients) {
    return std::map<std::string, Doubles>{{"out", result.out.data},
                                          {"dq", gradients.q.data},
                                          {"dk", gradients.k.data},
                                          {"dv", gradients.v.data}};
  };
  return trial;
}

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

std::vector<int32_t> row_map(const Diagonals& diagonals,
                             const std::function<int64_t(int64_t distance)>& row) {
  std::vector<int32_t> map;
  for (int64_t n = 0; n < diagonals.count; ++n) {
    map.push_back(static_cast<int32_t>(row(diagonals.distance(n))));
  }
  return map;
}

}  // namespace sextant::golden
