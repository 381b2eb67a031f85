// How widely a model attends: entropy and mean distance of its attention weights.
//
//   entropy of query i   -sum_j p_ij ln p_ij        ln of how many keys it spreads over, as it were
//   span of query i       sum_j p_ij (i - j)        how far back it looks on average
//
//
// Means over heads and over the last L/2 queries of the first kTexts test blocks, read in windows
// of each length that end there: the bytes that the sliding loss is scored on. A method whose
// attention grows flatter with longer texts shows it here. Weights that a sink takes are left out.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/result.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::lab {

// `method` is the decoder's own, made anew; the decoder keeps it. Builds matrices of length x
// length, one text at a time. pictures: if not null, is given `attention` and `cell`, of the first
// block; not where the longest length cannot be parted into 64 cells.
std::vector<AttentionAt> attention_entropy(Decoder& decoder, std::unique_ptr<Method> method,
                                           std::span<const std::string_view> blocks,
                                           const TestOptions& options, int64_t train_length,
                                           Pictures* pictures = nullptr);

}  // namespace sextant::lab
