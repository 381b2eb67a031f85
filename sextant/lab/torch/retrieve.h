// Retrieval accuracy of a decoder that was trained on pairs, by sequence length and distance.
#pragma once

#include <functional>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/result.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::lab {

// Tests options.texts sequences for each length and distance, the same for every decoder.
// on_distance(n, total) is called after each distance; it ends the test by throwing.
std::vector<AtDistance> retrieve(const Decoder& decoder, const RetrievalOptions& options,
                                 const std::function<void(int64_t, int64_t)>& on_distance);

}  // namespace sextant::lab
