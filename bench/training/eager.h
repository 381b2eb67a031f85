// The laboratory's training step with libtorch's own functions, optimiser and gradient clipping.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/torch/batches.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::bench {

// A decoder with RoPE (base 10000, half-split), LayerNorm and squared ReLU, tied embeddings.
class EagerTrainer {
 public:
  // Starts from the weights of `decoder`, whose method is rope.
  EagerTrainer(const Decoder& decoder, const lab::TrainingOptions& options);
  ~EagerTrainer();

  // Makes one step with the learning rate `rate` and returns the loss.
  double advance(const lab::Batch& batch, double rate);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sextant::bench
