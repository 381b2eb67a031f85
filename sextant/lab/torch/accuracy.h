// Accuracy of a model on its small task, by sequence length and distance: retrieval, or direction.
#pragma once

#include <functional>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/result/result.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::lab {

// Tests options.texts sequences for each length and each of asked_distances(), the same for every
// model. task: kPairs or kDirection. on_distance(n, total) is called after each distance; it ends
// the test by throwing.
std::vector<AtDistance> accuracies(const Decoder& decoder, Task task,
                                   const RetrievalOptions& options,
                                   const std::function<void(int64_t, int64_t)>& on_distance);

}  // namespace sextant::lab
