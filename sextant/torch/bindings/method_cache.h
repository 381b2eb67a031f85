// The methods of the last calls, for operators that name their method at each call: making one
// reads JSON and computes speeds, and a method that is kept keeps its tables of sinusoids for the
// next layer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant {

// shape: the fields of ModelShape in their order, but for the vocabulary, which methods take as an
// option; options: a JSON object. Throws Error as make_method() does. May be called from any
// thread.
std::shared_ptr<const Method> cached_method(const std::string& name,
                                            const std::vector<int64_t>& shape,
                                            const std::string& options);

}  // namespace sextant
