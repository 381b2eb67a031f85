// complex: words are complex numbers that turn with position, and a score is a modulus.
//
// Wang et al. 2020 (ICLR, "Encoding word order in complex embeddings"): component c of a word at position
// pos is r e^{i (w pos + theta)}. The model's width holds real parts, then imaginary parts; the input's
// two halves are r cos(theta) and r sin(theta), amplitude and first phase of the word, and the method
// turns them by trained frequencies w (one per component, shared by all words; one per word and
// component: complex_embedding() in position_ops.cc). w starts as the
// official code has it, 10000^(-2 (c div 2) / D). Positions count from 1.
//
// Attention as in the official code: q, k and v hold real and imaginary halves, z = sum of q_c k_c without
// a conjugate, score |z| / sqrt(2 d), one real softmax for both halves of v. So a score depends on the sum
// of the positions of query and key; flavour "conjugate" makes it depend on their distance. The text
// classification code divides by sqrt(d): `scale` "sqrt-d".
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>

#include "sextant/error.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/options.h"
#include "sextant/torch/methods/tensors.h"

namespace sextant {
namespace {

class Complex final : public Method {
 public:
  Complex(int64_t width, bool conjugate, bool sqrt_d)
      : half_(width / 2), conjugate_(conjugate), sqrt_d_(sqrt_d) {}

  bool relative() const override { return false; }
  std::vector<ParameterSpec> parameters() const override {
    std::vector<double> start;
    for (int64_t c = 0; c < half_; ++c)
      start.push_back(std::pow(10000.0, -2.0 * std::floor(static_cast<double>(c) / 2) / half_));
    return {{.name = "frequency_emb", .sizes = {half_}, .initial = tensor_of(start, {half_})}};
  }

  at::Tensor embed(const at::Tensor& x, const Placement& placement,
                   Parameters parameters) const override {
    const at::Tensor times = (query_positions(placement) + 1).to(x.options()).unsqueeze(1);
    const at::Tensor angle = times * parameters[0], cosine = angle.cos(), sine = angle.sin();
    const auto parts = x.chunk(2, -1);
    return at::cat({parts[0] * cosine - parts[1] * sine, parts[0] * sine + parts[1] * cosine}, -1);
  }

  void place(Operands& operands, const Placement&, int64_t, Parameters) const override {
    if (operands.q.size(3) % 2 != 0)
      fail("complex: head_dim: expected an even number (two halves), but got " +
           std::to_string(operands.q.size(3)));
    const auto q = operands.q.chunk(2, -1);
    // Re z and Im z as products with [Re k, Im k].
    operands.q = at::cat({q[0], conjugate_ ? q[1] : -q[1]}, -1);
    operands.q_imag = at::cat({q[1], conjugate_ ? -q[0] : q[0]}, -1);
    if (sqrt_d_) operands.scale *= std::sqrt(2.0);
  }

 private:
  int64_t half_;
  bool conjugate_, sqrt_d_;
};

std::unique_ptr<Method> make(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("complex", json);
  if (shape.width % 2 != 0)
    fail("complex: width: expected an even number (two halves), but got " +
         std::to_string(shape.width));
  return std::make_unique<Complex>(shape.width,
                                   options.choice("flavour", {"code", "conjugate"}) == 1,
                                   options.choice("scale", {"sqrt-2d", "sqrt-d"}) == 1);
}

}  // namespace

MethodInfo complex_method() {
  return {.name = "complex",
          .summary = "Complex word embeddings and modulus attention (Wang et al. 2020)",
          .defaults = R"({"flavour": "code", "scale": "sqrt-2d"})",
          .make = make};
}

}  // namespace sextant
