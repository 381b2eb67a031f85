// The loss of predicting each byte from the byte before it alone: a reference for models that have
// learned to use the order of their context.
//
//   p(y | x) = (c(x, y) + p(y)) / (c(x) + 1),   p(y) = (c(y) + 1) / (c + 256)
//
// The counts c are of the training bytes. A transformer without position encoding knows its current
// byte and little of the order of the earlier ones, so it comes near to this loss: with 800 000
// bytes of python3-doc it has 2.49 nats per byte, and the bigrams have 2.62.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sextant::lab {

struct BigramLoss {
  double mean = 0;             // nats per byte
  std::vector<double> blocks;  // of each test block
};

// The loss of bigrams of the training bytes on the last `scored` bytes of each test block: those
// that the sliding loss of a survey is scored on, L/2.
BigramLoss bigram_loss(std::string_view train, std::span<const std::string_view> blocks,
                       int64_t scored);

}  // namespace sextant::lab
