// A method whose operands come from a class in Python (plan/own_methods.h).
//
// The class is reached through the operators sextant_own::parameters and sextant_own::operands,
// which python/sextant/own_arm.py registers with the dispatcher of libtorch. They are composite, so
// autograd records the tensor functions that Python calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "sextant/torch/method.h"

namespace sextant::lab {

// Initial values are drawn from `seed`. Throws Error if there is no Python in this process.
std::unique_ptr<Method> own_method(const std::string& method, const ModelShape& shape,
                                   const std::string& options, uint64_t seed);

// Calls attention with the method once, for two lengths.
void try_method(const Method& method, const ModelShape& shape);

}  // namespace sextant::lab
