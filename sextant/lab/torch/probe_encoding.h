// The effect of any encoding as numbers: the vectors it adds to the input, or its scores for
// identical queries and keys.
#pragma once

#include <vector>

#include "sextant/lab/result/result.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/models/decoder/decoder.h"
#include "sextant/torch/method.h"

namespace sextant::lab {

// See Plugin::encode. Throws Error if the method refuses the options or the sizes.
ProbedEncoding probe_encoding(const EncodingRequest& request);

// Samples of a trained encoding for figures: its scores by distance, or its position vectors and
// their cosines. They are of the decoder's method with the decoder's parameters. scores: for the
// last position of a sequence of `length`, at all distances below 64 and at increasingly sparse
// ones beyond; query and key are one vector per key head, drawn from a normal distribution.
// vectors, cosines: at most 64 positions below 2 L and `length`, and at most 64 channels.
Pictures pictures_of(const Decoder& decoder, const Method& method, const ModelShape& shape,
                     int64_t length);

// Products of the position vectors of a trained model, in which positions meet in its attention.
//
// A layer computes q and k of norm(x) = gain (x - mean(x)) / deviation(x), and the vectors p are a
// part of x in all layers. Left out is the deviation, which depends on the token too:
//
//   p'_i = gain (p_i - mean(p_i))      without the mean for RMSNorm
//   product of i and j: p'_i W_q W_k^T p'_j
//
// How far distance alone explains the products: sextant/position/position_products.h. Yan et al.
// 2019 (TENER, arXiv 1911.04474, section 3) argue that W takes the sense of distance from them.
//
// The result has the positions below L, by layer and head; empty if the method adds nothing to the
// input. `untrained` is the decoder before its training, with random matrices W. `pictures`, if not
// null, receives the products.
PositionProducts trained_products(const Decoder& decoder, const Decoder& untrained,
                                  const Method& method, const ModelShape& shape,
                                  Pictures* pictures = nullptr);

}  // namespace sextant::lab
