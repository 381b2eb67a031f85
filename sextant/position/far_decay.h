// RoPE's far decay (Su et al. 2021, arXiv 2104.09864, section 3.4.3).
//
// The score of a rotated query and key is a sum over the n pairs of channels, with h_i = q_i k_i^*
// as complex numbers and d the distance:
//
//   s(d) = Re sum_{i<n} h_i e^{i d theta_i},      S_j(d) = sum_{i<j} e^{i d theta_i}
//   |s(d)| <= max_i |h_{i+1} - h_i|  sum_{j=1..n} |S_j(d)|,   h_n = 0
//
// by summation by parts (Abel). The mean of |S_j| over j is what the paper draws, and what falls in
// waves with the distance. For a query and a key that are equal, of length 1 and with the same
// share in each pair, h_i = 1/n: the bound is this mean itself, and the score is Re S_n / n.
#pragma once

#include <cstdint>

#include "sextant/base/export.h"
#include "sextant/position/spectrum.h"

namespace sextant {

// (1/n) sum_{j=1..n} |S_j(distance)|, fastest pair first as in `rotation`; (n + 1) / 2 at distance
// 0, and even in the distance. Phases are exact, sums are in double: the error is below n^2 2^-50.
// The gain and the growth of the pairs are left out. Throws Error if there is no pair.
SEXTANT_API double mean_partial_sum(const Rotation& rotation, int64_t distance);

// Re S_n(distance) / n, the score of equal vectors of length 1 with the same share in each pair.
SEXTANT_API double score_of_equal_vectors(const Rotation& rotation, int64_t distance);

}  // namespace sextant
