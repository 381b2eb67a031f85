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
#pragma once

#include "sextant/lab/result/result.h"
#include "sextant/models/decoder/decoder.h"
#include "sextant/torch/method.h"

namespace sextant::lab {

// Products of the positions below L, by layer and head; empty if the method adds nothing to the
// input. `untrained` is the decoder before its training, with random matrices W. `pictures`, if not
// null, receives the products.
PositionProducts trained_products(const Decoder& decoder, const Decoder& untrained,
                                  const Method& method, const ModelShape& shape,
                                  Pictures* pictures = nullptr);

}  // namespace sextant::lab
