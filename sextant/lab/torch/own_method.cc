#include "sextant/lab/torch/own_method.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>

#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/models/init.h"
#include "sextant/torch/named_operands.h"

namespace sextant::lab {
namespace {

template <class... Arguments>
torch::jit::Stack call_python(const std::string& name, Arguments&&... arguments) {
  const auto op = c10::Dispatcher::singleton().findSchema({"sextant_own::" + name, ""});
  if (!op)
    fail(
        "encoding of one's own: expected a process of Python, which `sextant survey` starts, but "
        "this is none");
  torch::jit::Stack stack;
  torch::jit::push(stack, std::forward<Arguments>(arguments)...);
  op->callBoxed(stack);
  return stack;
}

class OwnMethod final : public Method {
 public:
  OwnMethod(std::string method, const ModelShape& shape, std::string options, uint64_t seed)
      : method_(std::move(method)),
        shape_{shape.layers, shape.heads, shape.key_heads, shape.head_dim, shape.train_length},
        options_(std::move(options)),
        seed_(static_cast<int64_t>(seed)) {
    const torch::jit::Stack made = call_python("parameters", method_, shape_, options_, seed_);
    const auto names = made.at(0).to<std::vector<std::string>>();
    const std::vector<at::Tensor> values = made.at(1).toTensorVector();
    for (size_t n = 0; n < names.size(); ++n)
      specs_.push_back({.name = names[n], .sizes = values[n].sizes().vec(), .initial = values[n]});
  }

  std::vector<ParameterSpec> parameters() const override { return specs_; }

  // Phases by token rotate keys.
  bool changes_keys() const override { return true; }

  void apply(TensorOperands& o, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    const std::vector<at::Tensor> given(parameters.begin(), parameters.end());
    const torch::jit::Stack made = call_python("operands", method_, shape_, options_, seed_, layer,
                                               given, o.q, o.k, o.v, o.frames, layout.causal);
    const auto names = made.at(0).to<std::vector<std::string>>();
    const std::vector<at::Tensor> values = made.at(1).toTensorVector();
    NamedOperands named;
    for (size_t n = 0; n < names.size(); ++n) named[names[n]] = values[n];
    const auto take = [&](const char* name) { return named.extract(name).mapped(); };
    o.q = take("q"), o.k = take("k"), o.v = take("v");
    o.scale = take("scale").item<double>();
    set_operands(o, layout, named);
  }

 private:
  std::string method_;
  std::vector<int64_t> shape_;
  std::string options_;
  int64_t seed_;
  std::vector<ParameterSpec> specs_;
};

}  // namespace

std::unique_ptr<Method> own_method(const std::string& method, const ModelShape& shape,
                                   const std::string& options, uint64_t seed) {
  return std::make_unique<OwnMethod>(method, shape, options, seed);
}

void try_method(const Method& method, const ModelShape& shape) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> parameters;
  for (const ParameterSpec& spec : method.parameters())
    parameters.push_back(initial_value(spec, 0, spec.name).to(at::kFloat));
  constexpr int64_t kKeys = 9;
  for (const int64_t queries : {kKeys, int64_t{1}}) {
    const auto draw = [&](int64_t heads, int64_t rows, const char* name) {
      return normal_values({1, heads, rows, shape.head_dim}, 0, 1, 0, name).to(at::kFloat);
    };
    const Layout layout = {
        .batch = 1, .queries = queries, .keys = kKeys, .first_query = kKeys - queries};
    attend_with(method, draw(shape.heads, queries, "q"), draw(shape.key_heads, kKeys, "k"),
                draw(shape.key_heads, kKeys, "v"), layout, shape.layers - 1, parameters);
  }
}

}  // namespace sextant::lab
