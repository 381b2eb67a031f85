// Facts about methods for Python: torch.ops.sextant.methods, method_parameters, method_test_options
// and method_last_layer_runs.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/bindings/method_cache.h"
#include "sextant/torch/method.h"

namespace sextant {
namespace {

using nlohmann::json;

std::string describe_methods() {
  json all = json::object();
  for (const MethodInfo& info : methods())
    all[info.name] = {{"summary", info.summary},
                      {"formula", info.formula},
                      {"options", json::parse(info.defaults)}};
  return all.dump();
}

const char* name_of(ParameterSpec::Init init) {
  switch (init) {
    case ParameterSpec::Init::kZeros:
      return "zeros";
    case ParameterSpec::Init::kOnes:
      return "ones";
    case ParameterSpec::Init::kNormal:
      return "normal";
    case ParameterSpec::Init::kUniform:
      return "uniform";
  }
  fail("method: parameters: expected a known start, but got " +
       std::to_string(static_cast<int>(init)));
}

std::tuple<std::string, std::vector<at::Tensor>> describe_parameters(const std::string& name,
                                                                     at::IntArrayRef shape,
                                                                     const std::string& options) {
  json specs = json::array();
  std::vector<at::Tensor> initial;
  for (const ParameterSpec& spec : cached_method(name, shape.vec(), options)->parameters()) {
    specs.push_back({{"name", spec.name},
                     {"sizes", spec.sizes},
                     {"init", name_of(spec.init)},
                     {"low", spec.init_low},
                     {"high", spec.init_high},
                     {"learning_rate_scale", spec.learning_rate_scale},
                     {"weight_decay", spec.weight_decay}});
    if (const auto& same = spec.same_as)
      specs.back()["same_as"] = {{"of", same->of == LayerProjection::Of::kQuery ? "query" : "key"},
                                 {"layer", same->layer},
                                 {"bias", same->bias}};
    initial.push_back(spec.initial.defined() ? spec.initial : at::empty({0}, at::kDouble));
  }
  return {specs.dump(), std::move(initial)};
}

std::string test_options(const std::string& name) { return method_info(name).tests.options; }

int64_t last_layer_runs(const std::string& name, at::IntArrayRef shape,
                        const std::string& options) {
  return cached_method(name, shape.vec(), options)->last_layer_runs();
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sextant, library) {
  library.def("methods() -> str", describe_methods);
  library.def("method_parameters(str method, int[] shape, str options) -> (str, Tensor[])",
              describe_parameters);
  library.def("method_test_options(str method) -> str", test_options);
  library.def("method_last_layer_runs(str method, int[] shape, str options) -> int",
              last_layer_runs);
}

}  // namespace sextant
