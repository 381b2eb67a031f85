// Range checks shared by the files of this folder.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "sextant/base/error.h"

namespace sextant {

// The factor by which the sequence may become longer. No method defines a factor below 1, which
// would make it shorter.
inline void check_factor(const std::string& method, double factor) {
  if (!(factor >= 1 && std::isfinite(factor))) {
    fail(method + ": factor: expected a finite number of at least 1, but got " +
         std::to_string(factor));
  }
}

inline void check_above_0(const std::string& method, const char* field, double value) {
  if (!(value > 0 && std::isfinite(value))) {
    fail(method + ": " + field + ": expected a finite number above 0, but got " +
         std::to_string(value));
  }
}

inline void check_length(const std::string& method, const char* field, int64_t length) {
  if (length < 1) {
    fail(method + ": " + field + ": expected at least 1, but got " + std::to_string(length));
  }
}

}  // namespace sextant
