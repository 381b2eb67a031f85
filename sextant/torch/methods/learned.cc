// learned: a trained vector for each position is added to the input.
//
// Gehring et al. 2017 (arXiv 1705.03122), Devlin et al. 2018 (BERT), Radford et al. 2018 (GPT): x_t
// += p[t], p of [rows, width]. A position without a row is an error, as in BERT and GPT-2;
// tensor2tensor silently adds zeros there.
//
// Rows past the training length are never trained. To test a model there, give it enough `rows`;
// the result is that of random rows. init_std is BERT's and GPT-2's 0.02, which suits their
// embeddings of that size. A small model with embeddings of size 1 that trains for minutes needs
// 0.7: rows of 0.02 or 0.1 do not grow to that size in time, and the method looks worse than it is
// (nats per character at the training length: 2.22 with 0.1, 1.88 with 0.7).
#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

class Learned final : public Method {
 public:
  Learned(int64_t rows, int64_t width, double init_std)
      : rows_(rows), width_(width), init_std_(init_std) {}

  bool relative() const override { return false; }
  int64_t added_channels() const override { return width_; }
  std::vector<ParameterSpec> parameters() const override {
    return {ParameterSpec::normal("position_embeddings.weight", {rows_, width_}, init_std_)};
  }

  at::Tensor embed(const at::Tensor& x, const Layout& layout,
                   Parameters parameters) const override {
    const at::Tensor positions = query_positions(layout);
    for (int64_t n = 0; n < positions.numel(); ++n)
      if (const int64_t t = positions.data_ptr<int64_t>()[n]; t < 0 || t >= rows_)
        fail("learned: position: expected 0 to " + std::to_string(rows_ - 1) +
             " (option rows), but got " + std::to_string(t));
    return x + parameters[0].index_select(0, on_device_of(x, positions));
  }

 private:
  int64_t rows_, width_;
  double init_std_;
};

std::unique_ptr<Method> make_learned(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("learned", json);
  return std::make_unique<Learned>(
      options.integer_or("rows", shape.train_length, 1, int64_t{1} << 31), shape.width,
      options.number("init_std", 0, 1e6));
}

}  // namespace

MethodInfo learned_method() {
  return {.name = "learned",
          .summary = "A trained vector per position, added to the input (BERT, GPT)",
          .formula = "x_t = x_t + p[t]",
          .defaults = R"({"rows": null, "init_std": 0.02})",
          .make = make_learned,
          .tests = {.options = R"({"rows": 64})"}};
}

}  // namespace sextant
