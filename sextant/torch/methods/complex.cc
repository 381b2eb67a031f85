// complex: token embeddings are complex numbers that rotate with position; a score is a modulus.
//
// Wang et al. 2020 (ICLR, "Encoding word order in complex embeddings"): component c of token j at
// position pos is r_jc e^{i (w_jc pos + theta_jc)}. The model's width holds real parts, then
// imaginary parts. Positions count from 1.
//
// amplitude "input": the halves a + i b of the input already are r e^{i theta} by token, and the
// method rotates them by w pos (and by a theta of its own, if there is one). "word": r is a table
// of the method and the input is ignored; these are the paper's three tables. Frequencies and
// phases are one per component, shared by all tokens (the paper's word-sharing, the language
// model's schema 2), one per token for all its components (schema 1), or one per token and
// component (schema 0). The official code has no phases: `phase` "none".
//
// w starts as the official table, 10000^(-2 (c div 2) / D), the same for every token; one w per
// token starts as in the official language model, normal, 0.02. Phases start uniformly over a full
// circle, amplitudes as torch's embeddings.
//
// Attention as in the official code: q, k and v hold real and imaginary halves, z = sum of q_c k_c
// without a conjugate, the score is |z| / sqrt(2 d) with d components of a head, half of head_dim,
// and one real softmax serves both halves of v.
// A score therefore depends on the sum of the positions of query and key; flavour "conjugate" makes
// it depend on their distance. The text classification code divides by sqrt(d): `scale` "sqrt-d".
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/complex_words.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

// The granularity of a parameter: one value per component, per token id, or per both.
enum class Per { kNothing, kComponent, kWord, kWordAndComponent };

struct ComplexOptions {
  int64_t components = 0;  // D, half of the width
  int64_t token_ids = 0;
  Per amplitude = Per::kNothing, frequency = Per::kComponent, phase = Per::kNothing;
  bool conjugate = false, sqrt_d = false;

  bool tells_words_apart() const {
    return amplitude != Per::kNothing || frequency > Per::kComponent || phase > Per::kComponent;
  }
};

class Complex final : public Method {
 public:
  explicit Complex(const ComplexOptions& options) : options_(options) {}

  bool relative() const override { return false; }
  bool reads_token_ids() const override { return options_.tells_words_apart(); }

  // The tables r, w and theta, as far as the options need them.
  std::vector<ParameterSpec> parameters() const override {
    using Init = ParameterSpec::Init;
    std::vector<ParameterSpec> specs;
    if (options_.amplitude != Per::kNothing)
      specs.push_back(ParameterSpec::normal("amplitude_emb", sizes(options_.amplitude), 1, true));
    if (options_.frequency == Per::kWord)
      specs.push_back(ParameterSpec::normal("frequency_emb", sizes(options_.frequency), 0.02));
    else
      specs.push_back({.name = "frequency_emb",
                       .sizes = sizes(options_.frequency),
                       .initial = official_frequencies().expand(sizes(options_.frequency))});
    if (options_.phase != Per::kNothing)
      specs.push_back({.name = "phase_emb",
                       .sizes = sizes(options_.phase),
                       .init = Init::kUniform,
                       .init_high = 2 * std::numbers::pi});
    return specs;
  }

  at::Tensor embed(const at::Tensor& x, const Layout& layout,
                   Parameters parameters) const override {
    const at::Tensor rotary_positions =
        on_device_of(x, (query_positions(layout) + 1).to(x.scalar_type())).unsqueeze(1);
    at::Tensor token_ids = reads_token_ids() ? query_token_ids(layout) : at::Tensor();
    if (token_ids.defined()) {
      check_words(token_ids, options_.token_ids);
      token_ids = token_ids.to(x.device());
    }
    const bool own_amplitude = options_.amplitude != Per::kNothing;
    const Parameters turning = parameters.subspan(own_amplitude ? 1 : 0);
    const at::Tensor theta = options_.phase != Per::kNothing ? turning[1] : at::Tensor();
    const at::Tensor angle = angles_of_token_ids(token_ids, rotary_positions, turning[0], theta);
    const at::Tensor cosine = angle.cos(), sine = angle.sin();
    if (own_amplitude) {
      const at::Tensor r = of_words(parameters[0], token_ids);
      return at::cat({r * cosine, r * sine}, -1);
    }
    const auto parts = x.chunk(2, -1);
    return at::cat({parts[0] * cosine - parts[1] * sine, parts[0] * sine + parts[1] * cosine}, -1);
  }

  void apply(TensorOperands& operands, const Layout&, int64_t, Parameters) const override {
    if (operands.q.size(3) % 2 != 0)
      fail("complex: head_dim: expected an even number (two halves), but got " +
           std::to_string(operands.q.size(3)));
    const auto q = operands.q.chunk(2, -1);
    // Re z and Im z as products with [Re k, Im k].
    operands.q = at::cat({q[0], options_.conjugate ? q[1] : -q[1]}, -1);
    operands.q_imag = at::cat({q[1], options_.conjugate ? -q[0] : q[0]}, -1);
    if (options_.sqrt_d) operands.scale *= std::sqrt(2.0);
  }

 private:
  std::vector<int64_t> sizes(Per per) const {
    if (per == Per::kComponent) return {options_.components};
    return {options_.token_ids, per == Per::kWord ? 1 : options_.components};
  }

  at::Tensor official_frequencies() const {
    const int64_t half = options_.components;
    std::vector<double> start;
    for (int64_t c = 0; c < half; ++c)
      start.push_back(std::pow(10000.0, -2.0 * std::floor(static_cast<double>(c) / 2) / half));
    return tensor_of(start, {half});
  }

  ComplexOptions options_;
};

std::unique_ptr<Method> make_complex(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("complex", json);
  if (shape.width % 2 != 0)
    fail("complex: width: expected an even number (two halves), but got " +
         std::to_string(shape.width));
  constexpr Per kFrequencies[] = {Per::kComponent, Per::kWord, Per::kWordAndComponent};
  constexpr Per kPhases[] = {Per::kNothing, Per::kComponent, Per::kWord, Per::kWordAndComponent};
  ComplexOptions complex = {
      .components = shape.width / 2,
      .amplitude = options.choice("amplitude", {"input", "word"}) == 1 ? Per::kWordAndComponent
                                                                       : Per::kNothing,
      .frequency =
          kFrequencies[options.choice("frequency", {"component", "word", "word-and-component"})],
      .phase =
          kPhases[options.choice("phase", {"none", "component", "word", "word-and-component"})],
      .conjugate = options.choice("flavour", {"code", "conjugate"}) == 1,
      .sqrt_d = options.choice("scale", {"sqrt-2d", "sqrt-d"}) == 1};
  if (complex.tells_words_apart())
    complex.token_ids = options.integer_or("vocabulary", shape.vocabulary, 1, int64_t{1} << 31);
  else if (!options.value("vocabulary").is_null())
    options.refuse("vocabulary", "null, as no number is a word's own");
  if (complex.tells_words_apart() && complex.token_ids < shape.vocabulary)
    options.refuse("vocabulary", "at least the model's " + std::to_string(shape.vocabulary));
  return std::make_unique<Complex>(complex);
}

}  // namespace

MethodInfo complex_method() {
  return {.name = "complex",
          .summary = "Complex word embeddings and modulus attention (Wang et al. 2020)",
          .formula =
              "f(j, pos)_c = r_jc e^{i (w_jc pos + theta_jc)}; z_ij = sum_c q_c k_c; s_ij = |z_ij| "
              "/ sqrt(2 d), d = head_dim / 2",
          .defaults = R"({"flavour": "code", "scale": "sqrt-2d", "amplitude": "input",
                          "frequency": "component", "phase": "none", "vocabulary": null})",
          .make = make_complex};
}

}  // namespace sextant
