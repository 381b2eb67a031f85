// The inputs and targets of a training step, as a function of the step's number.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

// int64 [size]: one token per byte.
at::Tensor tokens_of(std::string_view text);

// int64 [batch, length] each. Targets of kNotAsked (retrieval_task.h) are not counted in the loss.
struct Batch {
  at::Tensor tokens, targets;
  at::Tensor order = {};  // Decoder::permuted_losses; undefined: Decoder::losses
};
using Batches = std::function<Batch(int64_t step)>;

// Targets are the next bytes. continues: each row continues with the next segment in each step, for
// training with memory. Keeps references to options and corpus.
Batches text_batches(const TrainingOptions& options, const Corpus& corpus, uint64_t seed,
                     bool continues);

// Masked bytes (masked_text.h). Keeps references to options and corpus.
Batches masked_batches(const TrainingOptions& options, const Corpus& corpus, uint64_t seed);

// Permuted bytes (masked_text.h), for models with two streams. Keeps references as well.
Batches permuted_batches(const TrainingOptions& options, const Corpus& corpus, uint64_t seed);

// Sequences of a small task, kPairs or kDirection. Keeps a reference to options.
Batches small_batches(Task task, const TrainingOptions& options, uint64_t seed);

}  // namespace sextant::lab
