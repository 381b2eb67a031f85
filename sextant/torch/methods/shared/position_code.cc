#include "sextant/torch/methods/shared/position_code.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/matmul.h>

#include <cmath>

#include "sextant/base/error.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {

PositionCode::PositionCode(const std::string& name, int64_t columns, int64_t width, bool projected,
                           Rows rows)
    : columns_(columns), width_(width), projected_(projected), rows_(std::move(rows)) {
  if (!projected && columns > width)
    fail(name + ": expected a code of at most the model's " + std::to_string(width) +
         " columns (or option projected), but got " + std::to_string(columns));
}

std::vector<ParameterSpec> PositionCode::parameters() const {
  if (!projected_) return {};
  return {ParameterSpec::normal("projection", {columns_, width_},
                                1 / std::sqrt(static_cast<double>(columns_)), true)};
}

at::Tensor PositionCode::embed(const at::Tensor& x, const Layout& layout,
                               Parameters parameters) const {
  const at::Tensor positions = query_positions(layout);
  const std::span<const int64_t> all(positions.data_ptr<int64_t>(),
                                     static_cast<size_t>(positions.numel()));
  const at::Tensor code = tensor_of(rows_(all), {positions.numel(), columns_}, x).to(x.options());
  if (projected_) return x + code.matmul(parameters[0]);
  return x + at::constant_pad_nd(code, {0, width_ - columns_});
}

}  // namespace sextant
