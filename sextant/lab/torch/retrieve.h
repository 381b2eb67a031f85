// How often a decoder that learned pairs finds one, by length of the text and distance.
#pragma once

#include <functional>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/result.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::lab {

// options.texts texts for each length and distance, the same ones for every decoder. on_distance(n,
// of) is called after n of so many; it ends the test by throwing.
std::vector<AtDistance> retrieve(const Decoder& decoder, const RetrievalOptions& options,
                                 const std::function<void(int64_t, int64_t)>& on_distance);

}  // namespace sextant::lab
