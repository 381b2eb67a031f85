// Trains a decoder step by step with AdamW, linear warm-up, a half cosine, and clipped gradients.
//
// A step depends only on (settings, batch of the step, weights, moments, memory). There is no other
// state, so an interrupted and resumed training gives bitwise the same result as an uninterrupted
// one.
#pragma once

#include <cstdint>
#include <memory>

#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/checkpoint.h"
#include "sextant/lab/torch/batches.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::lab {

// The learning rate at 0 <= step < steps, relative to its peak.
double learning_rate_at(const TrainingOptions& options, int64_t step);

class Trainer {
 public:
  // Keeps references to options and decoder.
  Trainer(const TrainingOptions& options, Batches batches, Decoder& decoder, int64_t memory = 0);
  // Trains on text, see text_batches(). memory: positions; 0: windows at random positions.
  Trainer(const TrainingOptions& options, const Corpus& corpus, Decoder& decoder, uint64_t seed,
          int64_t memory = 0);
  ~Trainer();

  int64_t step() const { return step_; }
  // Does one step and returns its loss in nats per token. If the loss or the gradient norm is not
  // finite, it returns that value and changes no state; further steps would not help.
  double advance();

  // Weights, moments, memory and step as sections of a checkpoint. restore() throws Error that
  // names the mismatch, and then changes nothing.
  void save(Checkpoint& checkpoint) const;
  void restore(const Checkpoint& checkpoint);

 private:
  struct Optimizer;  // moments of AdamW

  const TrainingOptions& options_;
  Batches batches_;
  Decoder& decoder_;
  int64_t step_ = 0;
  Memory memory_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace sextant::lab
