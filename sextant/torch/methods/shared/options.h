// Options of a method with strict checks: a value of the wrong type or out of range is an Error
// that names the method, the option, the expectation and the value.
#pragma once

#include <string>
#include <string_view>

#include "sextant/files/json_fields.h"

namespace sextant {

// Keeps a reference to `options`, which must outlive it. The options are complete: make_method()
// has merged the user's options over the defaults and refused options that have no default.
struct Options : JsonFields {
  Options(std::string_view method, const nlohmann::json& options);

  // For options that may be null: null stands for `otherwise`, a size that only the model knows.
  int64_t integer_or(const std::string& option, int64_t otherwise, int64_t low, int64_t high) const;
};

}  // namespace sextant
