// The terms that a caller adds to attention beside any method: a scale, a sink, a bias by key, a
// window, a softcap and dropout, with the meaning that they have in the score equation
// (sextant/attention/score.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "sextant/torch/layout.h"
#include "sextant/torch/operands.h"

namespace sextant {

// The keys at distances -right .. left are visible; kNoLimit: all on that side.
struct DistanceWindow {
  static constexpr int64_t kNoLimit = -1;
  int64_t left = kNoLimit, right = kNoLimit;
};

struct CallTerms {
  // Multiplies products of queries and keys instead of 1/sqrt(head_dim), or of the method's own
  // factor. A method that multiplies the factor (a stretch of RoPE) multiplies this one.
  std::optional<double> scale = {};
  at::Tensor sink = {};  // [heads] or [batch, heads, queries], or undefined
  // [keys], [1 or batch, keys] or [1 or batch, 1 or heads, keys], or undefined; -infinity hides
  at::Tensor key_bias = {};
  std::optional<DistanceWindow> window = {};
  double softcap = 0;  // above 0; 0: none
  DropoutOperand dropout = {};
};

// Sets the scale, before the method changes the operands. Throws Error unless it is above 0.
void set_scale(TensorOperands& operands, const CallTerms& terms);

// Adds the other terms, after the method has changed the operands: it narrows the key ranges of all
// sweeps, adds to the key bias, and sets the sink. Throws Error that names the term for wrong
// shapes or types, and for a sink beside the method's own.
void add_terms(TensorOperands& operands, const Layout& layout, const CallTerms& terms);

}  // namespace sextant
