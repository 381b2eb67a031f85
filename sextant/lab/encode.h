// What `sextant plot` draws of a method that it has no drawing of its own for.
#pragma once

#include "sextant/lab/plugin.h"

namespace sextant::lab {

// See Plugin::encode. Throws Error if the method refuses the options or the sizes.
Encoding encode(const EncodingRequest& request);

}  // namespace sextant::lab
