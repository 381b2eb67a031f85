#include "sextant/torch/methods/shared/tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

at::Tensor first(const at::Tensor& key_ranges) { return key_ranges.select(-1, 0); }
at::Tensor last(const at::Tensor& key_ranges) { return key_ranges.select(-1, 1); }

}  // namespace

at::Tensor tensor_of(std::span<const double> values, at::IntArrayRef sizes) {
  at::Tensor result = at::empty(sizes, at::kDouble);
  std::ranges::copy(values, result.data_ptr<double>());
  return result;
}

at::Tensor tensor_of(std::span<const double> values, at::IntArrayRef sizes,
                     const at::Tensor& like) {
  return on_device_of(like, tensor_of(values, sizes));
}

at::Tensor tensor_of(std::span<const int32_t> values) {
  at::Tensor result = at::empty({static_cast<int64_t>(values.size())}, at::kInt);
  std::ranges::copy(values, result.data_ptr<int32_t>());
  return result;
}

at::Tensor sizes_of_distances(const Diagonals& diagonals, const at::Tensor& like) {
  at::Tensor sizes = at::empty({1, diagonals.count}, at::kDouble);
  for (int64_t n = 0; n < diagonals.count; ++n)
    sizes.data_ptr<double>()[n] = static_cast<double>(std::abs(diagonals.distance(n)));
  return on_device_of(like, sizes);
}

const at::Tensor& of_layer(std::span<const at::Tensor> tensors, int64_t layer) {
  if (layer < 0 || layer >= static_cast<int64_t>(tensors.size()))
    fail("method: layer: expected 0 to " +
         std::to_string(static_cast<int64_t>(tensors.size()) - 1) + ", but got " +
         std::to_string(layer));
  return tensors[static_cast<size_t>(layer)];
}

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
