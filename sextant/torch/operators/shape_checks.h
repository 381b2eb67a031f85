// Checks of type, shape and device of one tensor argument of attend. Symbolic sizes are supported.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sextant {

// The permitted sizes of one dimension.
struct Size {
  enum Rule { kAny, kExactly, kOneOr } rule = kAny;
  c10::SymInt size = 0;

  Size() = default;
  Size(Rule r, c10::SymInt n) : rule(r), size(std::move(n)) {}
  Size(int64_t n) : rule(kExactly), size(n) {}  // NOLINT(google-explicit-constructor)
  bool accepts(const c10::SymInt& got) const {
    return rule == kAny || got == size || (rule == kOneOr && got == 1);
  }
};

// Throws Error: "attend: ARGUMENT: expected EXPECTED, but got GOT".
[[noreturn]] void refuse(const std::string& argument, const std::string& expected,
                         const std::string& got);

// "Float [2, 3]"
std::string type_and_sizes(const at::Tensor& x);

// Throws Error if x is on a device: plans are made on the CPU. Meta tensors are accepted if `meta`.
void check_on_cpu(const char* argument, const at::Tensor& x, bool meta = false);

// Both throw Error unless x is undefined or has the type and the sizes.
void check_tensor(const char* argument, const at::Tensor& x, at::ScalarType type,
                  const std::vector<Size>& sizes);
// For data: x must be on the device of q, and its type must be computed in the same type as q's.
void check_like_q(const char* argument, const at::Tensor& x, const at::Tensor& q,
                  const std::vector<Size>& sizes);

}  // namespace sextant
