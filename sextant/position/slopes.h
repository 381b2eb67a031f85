// ALiBi's slopes (Press, Smith and Lewis 2021, arXiv 2108.12409): the bias of head h is
//
//   b_h(d) = -m_h d,   m_h = 2^(-max_bias (h + 1) / n)   for n heads, n a power of two
//
// For other n the authors take the slopes of the next smaller power of two p, followed by the first
// n - p of the slopes that 2p heads add between them: h = 0, 2, 4, ... of 2p. MPT computes the same
// list from 2p downwards; BLOOM, Falcon and GGUF (max_alibi_bias) use it too.
#pragma once

#include <cstdint>
#include <vector>

#include "sextant/base/export.h"

namespace sextant {

// Returns [heads], all above 0. The paper has max_bias 8; MPT calls it alibi_bias_max. Throws Error
// if heads is below 1, or max_bias is not finite and at least 0.
SEXTANT_API std::vector<double> alibi_slopes(int64_t heads, double max_bias = 8);

// The factor on slopes for sequences of `length` tokens after training on train_length (Al-Khateeb
// et al. 2023, arXiv 2310.13017, position interpolation): train_length / length, so that no bias is
// larger than in training; 1 if length is not longer. Throws Error unless both are at least 1.
SEXTANT_API double interpolated_slope(int64_t train_length, int64_t length);

}  // namespace sextant
