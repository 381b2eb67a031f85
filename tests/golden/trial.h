// From a golden case to one call of attention, and from its result back to the file's own arrays.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/attention/problem.h"
#include "tests/golden/golden.h"

namespace sextant::golden {

struct Trial {
  oracle::Problem<double> problem;
  oracle::Tensor<double> d_out;   // of no size: the file has no gradients
  oracle::Tensor<double> scores;  // what enters softmax, [B, H, Q, K]; of no size: not in the file
  double tolerance = 1e-12;
  // Answers of the file that attention need not give, and why.
  std::map<std::string, std::string> excused;
  // What the official module makes of attention's result and gradients, by the file's names.
  std::function<std::map<std::string, Doubles>(const oracle::Result<double>&,
                                               const oracle::Gradients<double>&)>
      answers;
};

// A family of cases: those whose names start with `prefix`.
struct Family {
  std::string_view prefix;
  Trial (*trial)(const Golden&);
};

const std::vector<Family>& rotary_families();
const std::vector<Family>& bias_families();
const std::vector<Family>& product_families();
const std::vector<Family>& relative_families();
const std::vector<Family>& deberta_families();

// Of all families, the one with the longest prefix of `name`.
std::optional<Family> family_of(std::string_view name);

// --- what families have in common ---

// q, k, v, scale, gradients and answers by the names that the rotary goldens use; everything is
// visible that `mask` lets through, and without a mask everything. Query i stands at the end of the
// keys.
Trial plain_trial(const Golden& golden);

// For each query the one run of keys whose flags are not 0. Throws Error if it is not one run.
std::vector<KeyRange> key_ranges_of(const Doubles& flags, int64_t queries, int64_t keys);

// Element [h, i, j] of a matrix that depends on the distance only, as one number per diagonal: rows
// [1, H, diagonals, 1]. Throws Error if the matrix is no function of the distance.
oracle::Tensor<double> by_diagonal(const Doubles& matrix, int64_t heads, int64_t queries,
                                   int64_t keys);

// A row map by signed distance (query minus key) for the problem's diagonals.
std::vector<int32_t> row_map(const Diagonals& diagonals,
                             const std::function<int64_t(int64_t distance)>& row);

}  // namespace sextant::golden
