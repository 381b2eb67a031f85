// The methods of recent calls, for operators that name their method at each call. Making a method
// parses JSON and computes rotation frequencies, and a method may hold tables of sinusoids, which
// the next layer reuses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sextant/torch/method.h"
#include "sextant/torch/operators/tensor_plan.h"

namespace sextant {

// A method and the plans of its recent layouts.
struct CachedMethod {
  std::shared_ptr<const Method> method;
  std::shared_ptr<PlanCache> plans;

  const Method& operator*() const { return *method; }
  const Method* operator->() const { return method.get(); }
};

// `shape` has the fields of ModelShape in their order without the vocabulary, which methods have as
// an option. `options` is a JSON object. Throws Error as make_method() does. Thread-safe.
CachedMethod cached_method(const std::string& name, const std::vector<int64_t>& shape,
                           const std::string& options);

// The method "own" of operators, which no list of methods has: its parameters are the operands of
// an encoding of one's own (named_operands.h), and the option "names" has their names. Throws Error
// for other options. Its plans are those of all such encodings. Thread-safe.
inline constexpr const char* kOwnMethod = "own";
CachedMethod own_method(const std::string& options, const std::vector<at::Tensor>& operands);

}  // namespace sextant
