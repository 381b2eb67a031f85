// What a training step reads, and what it is to answer: a function of the step's number.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string_view>

#include "sextant/lab/data/corpus.h"
#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

// int64 [size]: a byte is a token.
at::Tensor tokens_of(std::string_view text);

// int64 [batch, length] each. A target of kNotAsked (retrieval_task.h) is not counted.
struct Batch {
  at::Tensor tokens, targets;
};
using Batches = std::function<Batch(int64_t step)>;

// The next byte of each. on: rows read on, one segment a step, as a training with memory needs.
// Refers to options and corpus.
Batches text_batches(const TrainingOptions& options, const Corpus& corpus, uint64_t seed, bool on);

// Pairs and questions. Refers to options.
Batches pair_batches(const TrainingOptions& options, uint64_t seed);

}  // namespace sextant::lab
