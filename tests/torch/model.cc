#include "tests/torch/model.h"

#include <ATen/TensorOperators.h>

#include <nlohmann/json.hpp>

#include "tests/torch/dense.h"

namespace sextant::testing {

std::unique_ptr<Method> method_of(const std::string& name, const ModelShape& shape,
                                  const std::string& options) {
  return make_method(name, shape, nlohmann::json::parse(options));
}

std::vector<at::Tensor> random_parameters(const Method& method) {
  std::vector<at::Tensor> parameters;
  for (const ParameterSpec& spec : method.parameters())
    parameters.push_back(0.2 * normal(spec.sizes, 100 + parameters.size()));
  return parameters;
}

Layer::Layer(const ModelShape& shape, const Layout& p)
    : x(normal({p.batch, p.queries, shape.width}, 1)),
      q(normal({p.batch, shape.heads, p.queries, shape.head_dim}, 2)),
      k(normal({p.batch, shape.key_heads, p.keys, shape.head_dim}, 3)),
      v(normal({p.batch, shape.key_heads, p.keys, shape.head_dim}, 4)),
      seen(normal({p.batch, p.keys, shape.width}, 5)) {}

ModelShape Subject::shape() const {
  ModelShape shape = kSmallShape;
  if (!shares_key_heads) shape.key_heads = shape.heads;
  shape.width = shape.heads * head_dim;
  shape.head_dim = head_dim;
  return shape;
}

Subject subject(const std::string& method) { return {method_info(method).tests}; }

}  // namespace sextant::testing
