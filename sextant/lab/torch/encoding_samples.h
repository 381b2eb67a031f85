// What a trained encoding does, as numbers to draw: its scores by distance, or its vectors and how
// alike they are.
#pragma once

#include "sextant/lab/report/result.h"
#include "sextant/models/decoder/decoder.h"
#include "sextant/torch/method.h"

namespace sextant::lab {

// Of a decoder's method with the decoder's parameters. scores: of the last position of a text of
// `length`, at all distances below 64 and then ever fewer; the vector is drawn for each head of
// keys from a normal distribution. vectors, cosines: of 64 positions below 2 L, of at most 64
// channels.
Pictures pictures_of(const Decoder& decoder, const Method& method, const ModelShape& shape,
                     int64_t length);

}  // namespace sextant::lab
