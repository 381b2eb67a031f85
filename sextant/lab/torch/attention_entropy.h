// Spread of a model's attention: entropy and mean distance of its weights.
//
//   entropy of query i   -sum_j p_ij ln p_ij     logarithm of the effective number of keys
//   span of query i       sum_j p_ij |i - j|     mean distance to the keys
//
// Both are means over heads and over L/2 queries of the first kTexts test blocks, in windows of
// each length: the last ones of windows that end with the block, or in models that see both
// directions the middle ones of windows in the middle of it. The sliding loss is scored on the same
// bytes. They show whether a method's attention becomes flatter on longer sequences. The weight of
// a sink is left out.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/result/result.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::lab {

// `method` is a new instance of the decoder's method, and the decoder keeps it. Memory: matrices of
// length x length, one sequence at a time. `pictures`, if not null, receives `attention` and `cell`
// of the first block, if the longest length is a multiple of 64.
std::vector<AttentionAt> attention_entropy(Decoder& decoder, std::unique_ptr<Method> method,
                                           std::span<const std::string_view> blocks,
                                           const TestOptions& options, int64_t train_length,
                                           Pictures* pictures = nullptr);

}  // namespace sextant::lab
