// Dropout of attention weights (Srivastava et al. 2014): after the softmax, each weight is 0 with
// probability p and else divided by 1 - p.
//
// Whether a weight is kept is a function of seed, batch entry, head, query row and key row alone,
// so it does not depend on threads, tiles, backends, or the pass. It is a word of Philox4x32-10
// (Salmon, Moraes, Dror and Shaw 2011); dropout_words.h says which.
#pragma once

#include <cstdint>

#include "sextant/base/export.h"

namespace sextant {

struct Dropout {
  double probability = 0;  // p of a weight to be 0, in [0, 1); 0: no dropout
  uint64_t seed = 0;
  // The call's first entry, query row and key row as the generator counts them: a call with a part
  // of the rows repeats what the whole call draws. Sums with the call's rows are at least 0.
  int64_t first_batch = 0, first_query = 0, first_key = 0;

  explicit operator bool() const { return probability > 0; }
  double kept_factor() const { return 1 / (1 - probability); }
};

// Whether the weight of query row i and key row j of the call, of entry b and query head h, is
// kept.
SEXTANT_API bool keeps(const Dropout& dropout, int64_t b, int64_t h, int64_t i, int64_t j);

}  // namespace sextant
