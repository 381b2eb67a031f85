#include "sextant/torch/methods/shared/key_ranges.h"

#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>

namespace sextant {
namespace {

at::Tensor first(const at::Tensor& key_ranges) { return key_ranges.select(-1, 0); }
at::Tensor last(const at::Tensor& key_ranges) { return key_ranges.select(-1, 1); }

}  // namespace

at::Tensor intersection(const at::Tensor& a, const at::Tensor& b) {
  return at::stack({at::maximum(first(a), first(b)), at::minimum(last(a), last(b))}, -1);
}

at::Tensor before(const at::Tensor& key_ranges, const at::Tensor& others) {
  return at::stack({first(key_ranges), at::minimum(last(key_ranges), first(others))}, -1);
}

at::Tensor after(const at::Tensor& key_ranges, const at::Tensor& others) {
  return at::stack({at::maximum(first(key_ranges), last(others)), last(key_ranges)}, -1);
}

}  // namespace sextant
