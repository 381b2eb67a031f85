// The one exception type that Sextant throws at its API edges.
//
// A message says what was wrong, what was expected and what was found, so that the user can act on
// it: `fail("alibi: heads: expected at least 1, but got 0")`.
#pragma once

#include <stdexcept>
#include <string>

#include "sextant/base/export.h"

namespace sextant {

class SEXTANT_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail(const std::string& message) { throw Error(message); }

}  // namespace sextant
