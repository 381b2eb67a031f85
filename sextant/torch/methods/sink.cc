// sink: a trained score per head that enters the softmax and has no value; wraps another method.
//
// gpt-oss (OpenAI 2025): p_ij = exp(s_ij) / (exp(sink_h) + sum_j exp(s_ij)), so that a head can
// attend to nothing; one sink per query head and layer, not scaled. Sinks start at 0, which is
// "softmax plus one". gpt-oss has sink over window over rope. A sink here is a scalar;
// StreamingLLM's sinks are keys (option `sinks` of window).
#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/method_wrapper.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

class Sink final : public MethodWrapper {
 public:
  Sink(std::unique_ptr<Method> of, const ModelShape& shape)
      : MethodWrapper(std::move(of), static_cast<size_t>(shape.layers)),
        layers_(shape.layers),
        heads_(shape.heads) {}

  // The wrapped method's parameters, then the sinks of each layer.
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs = MethodWrapper::parameters();
    for (int64_t n = 0; n < layers_; ++n) {
      const std::string block = layers_ > 1 ? "block." + std::to_string(n) + ".attn." : "";
      specs.push_back({.name = block + "sinks", .sizes = {heads_}});
    }
    return specs;
  }

  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    MethodWrapper::apply(operands, layout, layer, parameters);
    operands.sink = of_layer(parameters.last(static_cast<size_t>(layers_)), layer);
  }

 private:
  int64_t layers_, heads_;
};

std::unique_ptr<Method> make_sink(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("sink", json);
  return std::make_unique<Sink>(make_method(options.string("of"), shape, options.object("options")),
                                shape);
}

}  // namespace

MethodInfo sink_method() {
  return {.name = "sink",
          .summary = "A trained score per head that takes attention away (gpt-oss)",
          .formula = "p_ij = exp(s_ij) / ( exp(sink_h) + sum_j exp(s_ij) )",
          .defaults = R"({"of": "rope", "options": {}})",
          .make = make_sink,
          .tests = {.rounding = 1e-14}};
}

}  // namespace sextant
