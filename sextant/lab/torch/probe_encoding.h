// What an encoding does, whatever it is: what it adds to the input, or the scores it makes of like
// vectors.
#pragma once

#include <vector>

#include "sextant/lab/run/plugin.h"
#include "sextant/torch/method.h"

namespace sextant::lab {

// See Plugin::encode. Throws Error if the method refuses the options or the sizes.
Encoding encode(const EncodingRequest& request);

// [queries, width]: what the method makes of an input of zeros, or, where that is nothing, of ones;
// empty if it leaves the input alone. A method that tells words apart is given word 0 everywhere.
// Parameters: float64.
std::vector<double> added_by(const Method& method, const ModelShape& shape, const Layout& layout,
                             Parameters parameters);

// [heads, queries, keys]: the score of each query and key, all of a head one and the same vector;
// NaN: not seen.
std::vector<double> scores_by(const Method& method, const ModelShape& shape, const Layout& layout,
                              Parameters parameters);

}  // namespace sextant::lab
