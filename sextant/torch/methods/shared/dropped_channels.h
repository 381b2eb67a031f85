// A method that adds a vector to the input, with some channels of that vector set to zero.
//
// A test of redundancy: a sinusoid tells a position by many channels, and a binary code by each bit
// once. Weights are trained with the whole vector and tested without some of its channels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant {

// `count` different channels of 0 .. channels - 1, in rising order. They depend on the seed only,
// and with a smaller count they are a subset of those with a larger one.
std::vector<int64_t> drawn_channels(int64_t channels, int64_t count, uint64_t seed);

// The method with `count` of the channels that it adds to set to zero (Method::added_channels()).
// Throws Error, which names the methods of the registry that add to the input, if `of` adds
// nothing, and if `count` is not between 1 and the number of channels.
std::unique_ptr<Method> with_dropped_channels(std::unique_ptr<Method> of, const ModelShape& shape,
                                              int64_t count, uint64_t seed);

}  // namespace sextant
