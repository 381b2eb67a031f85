// Converts a golden case to one call of attention, and the result back to the file's arrays.
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
  oracle::Tensor<double> d_out;   // empty: the file has no gradients
  oracle::Tensor<double> scores;  // the inputs of softmax, [B, H, Q, K]; empty: not in the file
  double tolerance = 1e-12;
  // Answers of the file that are not compared, and why.
  std::map<std::string, std::string> excused;
  // The official module's outputs and gradients by the file's names, from attention's.
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

// The family with the longest prefix of `name`.
std::optional<Family> family_of(std::string_view name);

// --- shared by the families ---

// q, k, v, scale, gradients and answers by the names of the rotary cases. Keys are visible where
// `mask` is not 0, or everywhere without a mask. The last query is at the position of the last key.
Trial plain_trial(const Golden& golden);

// The range of keys of each query whose flags are not 0. Throws Error if they are not one range.
std::vector<KeyRange> key_ranges_of(const Doubles& flags, int64_t queries, int64_t keys);

// A matrix [h, i, j] that depends on the distance only, as one value per diagonal: rows [1, H,
// diagonals, 1]. Throws Error if the matrix is not a function of the distance.
oracle::Tensor<double> by_diagonal(const Doubles& matrix, int64_t heads, int64_t queries,
                                   int64_t keys);

// A row map by signed distance (query minus key) for the problem's diagonals.
std::vector<int32_t> row_map(const Diagonals& diagonals,
                             const std::function<int64_t(int64_t distance)>& row);

}  // namespace sextant::golden
