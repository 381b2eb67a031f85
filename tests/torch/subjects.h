// What the tests of all methods have to know about one.
#pragma once

#include <string>

#include "sextant/torch/method.h"

namespace sextant::testing {

struct Subject {
  std::string options = "{}";  // that let it serve 64 positions, with and without a causal mask
  bool absolute = false;       // knows absolute positions, so it changes if all are shifted
  double rounding = 0;         // by how much a shift may change a relative one; 0: by no bit
  bool shares_key_heads = true;
  int64_t head_dim = 6;
  bool smooth = true;  // in its parameters: a ReLU has kinks, where differences are no derivatives

  ModelShape shape() const;  // of a small model; key heads are shared by two if they can be
};

// The defaults above, unless subjects.cc says otherwise.
const Subject& subject(const std::string& method);

}  // namespace sextant::testing
