// Samples of a trained encoding for figures: its scores by distance, or its position vectors and
// their cosines.
#pragma once

#include "sextant/lab/result/result.h"
#include "sextant/models/decoder/decoder.h"
#include "sextant/torch/method.h"

namespace sextant::lab {

// Samples the decoder's method with the decoder's parameters. scores: for the last position of a
// sequence of `length`, at all distances below 64 and at increasingly sparse ones beyond; query and
// key are one vector per key head, drawn from a normal distribution. vectors, cosines: at most 64
// positions below 2 L and `length`, and at most 64 channels.
Pictures pictures_of(const Decoder& decoder, const Method& method, const ModelShape& shape,
                     int64_t length);

}  // namespace sextant::lab
