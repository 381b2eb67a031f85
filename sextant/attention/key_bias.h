// Key biases relative to the largest one among the keys that a query sees, c_r: c_j - c_r. A term
// that is equal for all keys of a query cancels in softmax. So float32 keeps the scores of the keys
// that matter, however far c has grown, and however low the bias is that hides a key.
#pragma once

#include <cstdint>
#include <span>

#include "sextant/attention/plan.h"
#include "sextant/base/view.h"
#include "sextant/base/workspace.h"

namespace sextant {

// c_r of each batch entry, head and query; 0 if the query sees no key or c_r is not finite. Without
// a key_bias all are 0.
class KeyBiasOrigins {
 public:
  KeyBiasOrigins() = default;
  // key_bias [batch, heads, keys, 1]; queries: the rows of q. A query sees the keys of all sweeps.
  // memory: where they are kept; null: in memory of their own.
  KeyBiasOrigins(const HostView<const double>& key_bias, std::span<const Frame> frames,
                 std::span<const Sweep> sweeps, int64_t queries, Workspace* memory = nullptr);

  double at(int64_t b, int64_t h, int64_t i) const {
    return values_ ? values_[b * batch_stride_ + h * head_stride_ + i] : 0;
  }

 private:
  Workspace own_;
  const double* values_ = nullptr;
  int64_t batch_stride_ = 0, head_stride_ = 0;
};

}  // namespace sextant
