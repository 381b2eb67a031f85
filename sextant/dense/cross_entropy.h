// Cross-entropy: the loss of each row of logits and its derivative, each in two passes over a row
// while it is in the cache.
#pragma once

#include <cstdint>

#include "sextant/base/executor.h"

namespace sextant::dense {

// Logits [rows, columns], and the target column of each row, in [0, columns).
struct Answers {
  const float* logits = nullptr;
  const int64_t* targets = nullptr;
  int64_t rows = 0, columns = 0;
};

// loss = lse - logit of the target, lse = ln sum_j e^(logit j), both [rows] and in nats. NaN for
// rows with a NaN logit.
void cross_entropy(const Answers& answers, float* loss, float* lse, const Executor& executor);

// d_logit j = d_loss (e^(logit j - lse) - [j is the target]).
void differentiate_cross_entropy(const Answers& answers, const float* lse, const float* d_loss,
                                 float* d_logits, const Executor& executor);

}  // namespace sextant::dense
