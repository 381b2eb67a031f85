// Options and properties of each method that the tests of all methods need.
#pragma once

#include <string>

#include "sextant/torch/method.h"

namespace sextant::testing {

struct Subject {
  std::string options = "{}";  // options that allow 64 positions, with and without a causal mask
  bool absolute = false;  // uses absolute positions, so a shift of all positions changes results
  double rounding = 0;    // how much a shift may change a relative method; 0: by no bit
  bool shares_key_heads = true;
  int64_t head_dim = 6;
  bool smooth = true;  // in its parameters: at the kinks of a ReLU, differences are no derivatives
  bool integrates = false;  // its positions: a float32 solver drifts over thousands of steps

  // The shape of a small model; two query heads share a key head if the method allows it.
  ModelShape shape() const;
};

// The subject of a method: the defaults above, unless subjects.cc says otherwise.
const Subject& subject(const std::string& method);

}  // namespace sextant::testing
