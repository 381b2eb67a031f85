// Sandwich's bias as a function of distance (Chi, Fan, Rudnicky and Ramadge 2022, arXiv
// 2212.10356): the dot product of two sinusoidal position vectors, which depends on their distance
// only,
//
//   c(d) = sum_{i = first}^{first + width/2 - 1} cos(d / 10000^(2i / width))
//
// A plain product of sinusoids has first = 0; the paper's equation and NVIDIA's NeMo count from 1,
// which drops the fastest cosine and adds one of wavelength 62832. The bias of head h is c(d) / r_h
// with the compression ratio r_h = ratio (h + 1) / heads, a divisor; the paper's ratio is 8. NeMo
// also subtracts width/2, which cancels in softmax.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/base/export.h"

namespace sextant {

// Returns c at each distance, with exact phases. Throws Error if width is odd or below 2, or first
// is negative.
SEXTANT_API std::vector<double> sandwich_curve(std::span<const int64_t> distances, int64_t width,
                                               int64_t first);

inline constexpr double kSandwichRatio = 8;

// Returns [heads]: 1 / r_h. Throws Error if heads is below 1, or ratio is not finite and above 0.
SEXTANT_API std::vector<double> sandwich_slopes(int64_t heads, double ratio = kSandwichRatio);

}  // namespace sextant
