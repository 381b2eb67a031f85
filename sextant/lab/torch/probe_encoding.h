// The effect of any encoding as numbers: the vectors it adds to the input, or its scores for
// identical queries and keys.
#pragma once

#include <vector>

#include "sextant/lab/run/plugin.h"
#include "sextant/torch/method.h"

namespace sextant::lab {

// See Plugin::encode. Throws Error if the method refuses the options or the sizes.
ProbedEncoding probe_encoding(const EncodingRequest& request);

// [queries, width]: the method's output for an input of zeros or, if that is zero, of ones; empty
// if the method leaves the input unchanged. Methods that read token ids get id 0 at every position.
// Parameters are float64.
std::vector<double> added_by(const Method& method, const ModelShape& shape, const Layout& layout,
                             Parameters parameters);

// [heads, queries, keys]: the score of each query and key, all of which are the same vector within
// a head. NaN marks a masked key.
std::vector<double> scores_by(const Method& method, const ModelShape& shape, const Layout& layout,
                              Parameters parameters);

}  // namespace sextant::lab
