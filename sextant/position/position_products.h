// Products of position vectors, and how far distance alone explains them.
//
// In attention over x + p the positions meet in p_i W_q W_k^T p_j. For sinusoids (Vaswani et al.
// 2017) p_i . p_j depends on i - j only; with matrices between, in general, it does not (Yan et al.
// 2019, TENER, arXiv 1911.04474, section 3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/base/export.h"

namespace sextant {

// Matrices are row-major. Sizes that do not fit together throw Error.

// p_i . p_j for the vectors `rows` [count, width]: [count, count].
SEXTANT_API std::vector<double> position_products(std::span<const double> rows, int64_t count);

// The projections of a head to its queries and keys: W_q and W_k, [width, head_dim] each.
struct HeadProjection {
  std::span<const double> query, key;
};

// p_i W_q W_k^T p_j for the vectors `rows` [count, width], without 1/sqrt(head_dim):
// [count, count], queries first.
SEXTANT_API std::vector<double> position_products(std::span<const double> rows, int64_t count,
                                                  const HeadProjection& head);

// The values less their mean, in units of their standard deviation; zeros if they do not vary.
std::vector<double> standardised(std::vector<double> values);

enum class PairsOfPositions {
  kPast,  // keys before the query, j < i
  kAll,
};

// The share of the variance of matrix[i][j] that the distance i - j explains: with m_d the mean of
// diagonal d and m the mean of all pairs,
//
//   sum_ij (m_{i-j} - m)^2 / sum_ij (matrix[i][j] - m)^2
//
// 1 for a Toeplitz matrix. For noise it is expected to be 2 / count, the diagonals over the pairs,
// and not 0. Values that are not finite are left out. NaN if the values do not vary, as there is
// nothing to explain, or if there are fewer than two.
SEXTANT_API double variance_explained_by_distance(std::span<const double> matrix, int64_t count,
                                                  PairsOfPositions pairs);

}  // namespace sextant
