#include "tests/torch/method_on_backend.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <regex>

#include "sextant/torch/operators/backend_choice.h"
#include "tests/torch/dense.h"

namespace sextant::testing {
namespace {

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

}  // namespace

void PrintTo(const MethodCase& c, std::ostream* out) { *out << c.title; }
void PrintTo(const BackendCase& c, std::ostream* out) { *out << c.backend->name << " " << c.type; }

std::vector<MethodCase> method_cases() {
  std::vector<MethodCase> result;
  for (const MethodInfo& info : methods())
    result.push_back({info.name, info.name, subject(info.name).options});
  result.push_back({"alibi_bloom", "alibi", R"({"flavour": "bloom"})", /*masked=*/true});
  for (MethodCase& c : result) {
    // Tables for 64 positions become tables for 4096.
    c.options = std::regex_replace(c.options, std::regex("\\b64\\b"), "4096");
    std::ranges::replace(c.title, '-', '_');
  }
  return result;
}

std::string title(const ::testing::TestParamInfo<MethodOnBackend::ParamType>& info) {
  const auto& [method, on] = info.param;
  std::string name(on.backend->name);
  std::ranges::replace(name, '-', '_');
  if (on.type != at::kFloat) name += std::string("_") + at::toString(on.type);
  return method.title + "_" + name;
}

// The bound of the error relative to the largest result. It depends on the type of products.
double MethodOnBackend::tolerance() const {
  const bool narrow = type_ != at::kFloat || backend_.products == DType::kBfloat16;
  return narrow ? 2e-2 : 2e-5;
}

// q, k, v and the parameters; values of the case's type in any type.
MethodOnBackend::Tensors MethodOnBackend::inputs_of(const Layer& layer, at::ScalarType type) const {
  Tensors inputs = {layer.q, layer.k, layer.v};
  for (const at::Tensor& x : random_parameters(*method_)) inputs.push_back(x);
  for (at::Tensor& x : inputs) x = x.to(type_).to(type);
  return inputs;
}

at::Tensor MethodOnBackend::forward(const Tensors& inputs, const Layer& layer,
                                    const Layout& layout) const {
  const Parameters parameters = Parameters(inputs).subspan(3);
  const at::Tensor seen = layer.seen.to(type_).to(inputs[0].scalar_type());
  const at::Tensor k = with_key_columns(*method_, inputs[1], seen, 1, parameters);
  return attend_with(*method_, inputs[0], k, inputs[2], layout, 1, parameters);
}

MethodOnBackend::Outcome MethodOnBackend::run(const Layer& layer, const Layout& layout,
                                              at::ScalarType type) const {
  Tensors inputs = inputs_of(layer, type);
  for (at::Tensor& x : inputs) x.requires_grad_();
  Outcome outcome;
  outcome.out = forward(inputs, layer, layout);
  const at::Tensor above = normal(outcome.out.sizes().vec(), 5).to(type_).to(type);
  outcome.gradients = torch::autograd::grad({(outcome.out * above).sum()}, inputs, {},
                                            /*retain_graph=*/false, /*create_graph=*/false,
                                            /*allow_unused=*/true);
  return outcome;
}

Layout MethodOnBackend::layout(int64_t queries, int64_t keys) const {
  Layout p = {.batch = 1, .queries = queries, .keys = keys, .first_query = keys - queries};
  // A hole, as left padding inside a batch leaves none.
  if (case_.masked) p.mask = at::arange(keys, at::kLong).remainder(7).ne(3).view({1, 1, 1, keys});
  return p;
}

void MethodOnBackend::expect_agreement(int64_t queries, int64_t keys) const {
  SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys");
  const Layout p = layout(queries, keys);
  const Layer layer(shape_, p);
  const Outcome expected = run(layer, p, at::kDouble);
  const BackendOverride chosen(backend_);
  // A call without gradients may run on another backend than one that trains.
  EXPECT_LE(largest_difference(forward(inputs_of(layer, type_), layer, p), expected.out),
            tolerance() * largest(expected.out));
  const Outcome got = run(layer, p, type_);
  EXPECT_LE(largest_difference(got.out, expected.out), tolerance() * largest(expected.out));
  // Score gradients of a query sum to zero. Where an operand's gradient is such a sum, the
  // rounding of its terms is left, and it has the size of the gradients of q, k and v.
  double terms = 0;
  for (size_t n = 0; n < 3; ++n) terms = std::max(terms, largest(expected.gradients[n]));
  for (size_t n = 0; n < got.gradients.size(); ++n) {
    ASSERT_EQ(got.gradients[n].defined(), expected.gradients[n].defined()) << n;
    if (!got.gradients[n].defined()) continue;
    EXPECT_LE(largest_difference(got.gradients[n], expected.gradients[n]),
              10 * tolerance() * std::max(terms, largest(expected.gradients[n])))
        << "gradient " << n << ", at most " << largest(expected.gradients[n]) << ", of terms "
        << terms;
  }
}

}  // namespace sextant::testing
