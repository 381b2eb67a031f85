// A code of positions that has fewer columns than the model is wide, added to the input.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant {

class PositionCode final : public Method {
 public:
  // [positions, columns], row by row
  using Rows = std::function<std::vector<double>(std::span<const int64_t> positions)>;

  // Projected, the code goes through a trained [columns, width] matrix; else it fills the first
  // columns. Throws Error if it is wider than the model then.
  PositionCode(const std::string& name, int64_t columns, int64_t width, bool projected, Rows rows);

  std::vector<ParameterSpec> parameters() const override;
  bool relative() const override { return false; }
  at::Tensor embed(const at::Tensor& x, const Layout& layout, Parameters parameters) const override;

 private:
  int64_t columns_, width_;
  bool projected_;
  Rows rows_;
};

}  // namespace sextant
