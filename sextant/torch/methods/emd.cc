// emd: DeBERTa's enhanced mask decoder, absolute positions in the last layers; wraps another
// method.
//
// He, Liu, Gao and Chen 2020 (arXiv 2006.03654), section 3.2, as released by Microsoft
// (DeBERTa/apps/models/masked_language_model.py). With h the output of the layer before last:
//
//   g_0 = h + p[t],   g_n = last layer(queries and residual: g_(n-1), keys and values: h)
//
// for n = 1, 2, and tokens are predicted from g_2. p [rows, width] is a trained table that is not
// normalised. Both runs use the weights of the single last layer, where the paper has n layers; the
// layer's ordinary output, with queries from h, is not used. Hugging Face's port omits all of this.
//
// The layers below have only the relative positions of the wrapped method.
#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/method_wrapper.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

struct EmdOptions {
  int64_t rows = 0, width = 0, runs = 0;
  double init_std = 0;
};

class Emd final : public MethodWrapper {
 public:
  Emd(std::unique_ptr<Method> of, const EmdOptions& options)
      : MethodWrapper(std::move(of), 1), options_(options) {}

  bool relative() const override { return false; }

  // The wrapped method's parameters, then p.
  std::vector<ParameterSpec> parameters() const override {
    std::vector<ParameterSpec> specs = MethodWrapper::parameters();
    specs.push_back(ParameterSpec::normal("position_embeddings.weight",
                                          {options_.rows, options_.width}, options_.init_std));
    return specs;
  }

  at::Tensor embed_last(const at::Tensor& x, const Layout& layout,
                        Parameters parameters) const override {
    const at::Tensor positions = query_positions(layout);
    for (int64_t n = 0; n < positions.numel(); ++n)
      if (const int64_t t = positions.data_ptr<int64_t>()[n]; t < 0 || t >= options_.rows)
        fail("emd: position: expected 0 to " + std::to_string(options_.rows - 1) +
             " (option rows), but got " + std::to_string(t));
    return x + parameters.back().index_select(0, on_device_of(x, positions));
  }
  int64_t last_layer_runs() const override { return options_.runs; }

 private:
  EmdOptions options_;
};

std::unique_ptr<Method> make_emd(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("emd", json);
  return std::make_unique<Emd>(
      make_method(options.string("of"), shape, options.object("options")),
      EmdOptions{.rows = options.integer_or("rows", shape.train_length, 1, int64_t{1} << 31),
                 .width = shape.width,
                 .runs = options.integer("runs", 1, 64),
                 .init_std = options.number("init_std", 0, 1e6)});
}

}  // namespace

MethodInfo emd_method() {
  return {.name = "emd",
          .summary = "Absolute positions in the last layers (DeBERTa's mask decoder, 2020)",
          .formula =
              "g_0 = h + p[t]; "
              "g_n = last layer( queries and residual from g_(n-1), keys and values from h )",
          .defaults = R"({"of": "deberta", "options": {}, "rows": null, "runs": 2,
                          "init_std": 0.02})",
          .make = make_emd,
          .tests = {.options = R"({"rows": 64})"}};
}

}  // namespace sextant
