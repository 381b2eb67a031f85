// Trains a decoder, one step at a time: AdamW, linear warm-up and half a cosine, clipped gradients.
//
// A step is a function of (settings, batch of that step, weights, moments, memory): nothing else is
// kept, so a training that is cut into pieces ends with the same bits as one that is not.
#pragma once

#include <cstdint>
#include <memory>

#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/checkpoint.h"
#include "sextant/lab/torch/batches.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::lab {

// Of step 0 <= step < steps, relative to the peak.
double learning_rate_at(const TrainingOptions& options, int64_t step);

class Trainer {
 public:
  // Refers to options and decoder for its lifetime.
  Trainer(const TrainingOptions& options, Batches batches, Decoder& decoder, int64_t memory = 0);
  // On text, see text_batches(). memory: positions; 0: every step reads other places.
  Trainer(const TrainingOptions& options, const Corpus& corpus, Decoder& decoder, uint64_t seed,
          int64_t memory = 0);
  ~Trainer();

  int64_t step() const { return step_; }
  // Does one step; its loss, in nats per token. Not finite: nothing was changed, and going on is
  // pointless.
  double advance();

  // Weights, moments, memory and step, as sections of a checkpoint. restore() throws Error that
  // names what does not fit; nothing is changed then.
  void save(Checkpoint& checkpoint) const;
  void restore(const Checkpoint& checkpoint);

 private:
  struct Optimizer;  // keeps libtorch's optimiser out of this header

  const TrainingOptions& options_;
  Batches batches_;
  Decoder& decoder_;
  int64_t step_ = 0;
  Memory memory_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace sextant::lab
