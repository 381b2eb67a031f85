// hierarchical: a trained table of n positions that serves n * n positions, written with two
// digits.
//
// Su 2020 (spaces.ac.cn/archives/7947): with u = (p - a p[0]) / (1 - a), position t is
//
//   q[t] = a u[t div n] + (1 - a) u[t mod n]
//
// so the first n rows are p itself, and BERT's table of 512 rows reaches 512 * 512 without
// training. The code combines two digits and does not interpolate between neighbours; a = 1/2 would
// give (i, j) and (j, i) the same row.
#include <ATen/TensorOperators.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/remainder.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

class Hierarchical final : public Method {
 public:
  Hierarchical(int64_t rows, int64_t width, double alpha, double init_std)
      : rows_(rows), width_(width), alpha_(alpha), init_std_(init_std) {}

  bool relative() const override { return false; }
  int64_t added_channels() const override { return width_; }
  std::vector<ParameterSpec> parameters() const override {
    return {ParameterSpec::normal("position_embeddings.weight", {rows_, width_}, init_std_)};
  }

  at::Tensor embed(const at::Tensor& x, const Layout& layout,
                   Parameters parameters) const override {
    const at::Tensor positions = query_positions(layout);
    for (int64_t n = 0; n < positions.numel(); ++n)
      if (const int64_t t = positions.data_ptr<int64_t>()[n]; t < 0 || t >= rows_ * rows_)
        fail("hierarchical: position: expected 0 to " + std::to_string(rows_ * rows_ - 1) +
             " (option rows, squared), but got " + std::to_string(t));
    const at::Tensor& p = parameters[0];
    const at::Tensor u = (p - alpha_ * p.slice(0, 0, 1)) / (1 - alpha_);
    const at::Tensor high = on_device_of(x, at::floor_divide(positions, rows_));
    const at::Tensor low = on_device_of(x, positions.remainder(rows_));
    return x + alpha_ * u.index_select(0, high) + (1 - alpha_) * u.index_select(0, low);
  }

 private:
  int64_t rows_, width_;
  double alpha_, init_std_;
};

std::unique_ptr<Method> make_hierarchical(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("hierarchical", json);
  const double alpha = options.number("alpha", 0, 1);
  if (alpha == 0 || alpha == 0.5 || alpha == 1)
    options.refuse("alpha", "a number between 0 and 1 but not 0.5, which mixes up the two digits");
  return std::make_unique<Hierarchical>(
      options.integer_or("rows", shape.train_length, 1, int64_t{1} << 31), shape.width, alpha,
      options.number("init_std", 0, 1e6));
}

}  // namespace

MethodInfo hierarchical_method() {
  return {.name = "hierarchical",
          .summary = "A trained table read as two-digit numbers (Su 2020)",
          .formula = "u = (p - a p[0]) / (1 - a); q[t] = a u[t div n] + (1 - a) u[t mod n]",
          .defaults = R"({"rows": null, "alpha": 0.4, "init_std": 0.02})",
          .make = make_hierarchical};
}

}  // namespace sextant
