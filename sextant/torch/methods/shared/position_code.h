// A position code with a number of columns of its own, added to the input embeddings.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant {

class PositionCode final : public Method {
 public:
  // Returns [positions, columns] in row-major order.
  using Rows = std::function<std::vector<double>(std::span<const int64_t> positions)>;

  // With `projected`, a trained [columns, width] matrix multiplies the code; without, the code
  // fills the first columns of the input, and a code wider than the model is an Error.
  PositionCode(const std::string& name, int64_t columns, int64_t width, bool projected, Rows rows);

  std::vector<ParameterSpec> parameters() const override;
  bool relative() const override { return false; }
  int64_t added_channels() const override { return projected_ ? width_ : columns_; }
  at::Tensor embed(const at::Tensor& x, const Layout& layout, Parameters parameters) const override;

 private:
  int64_t columns_, width_;
  bool projected_;
  Rows rows_;
};

}  // namespace sextant
