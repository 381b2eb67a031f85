#include "tests/torch/method_on_backend.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <regex>

#include "sextant/torch/operators/run.h"
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
  result.push_back(
      {"inkling_2", "inkling", R"({"columns": 3, "reach": 6, "flavour": "inkling2"})"});
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

MethodOnBackend::Inputs MethodOnBackend::inputs_of(const Layout& layout,
                                                   const at::TensorOptions& options) const {
  const Layer layer(shape_, layout);
  const auto given = [&](const at::Tensor& x) { return x.to(type_).to(options); };
  Inputs inputs = {.differentiable = {given(layer.q), given(layer.k), given(layer.v)},
                   .seen = given(layer.seen),
                   .x = given(layer.x),
                   .d_out = given(normal(layer.q.sizes().vec(), 5)),
                   .layout = layout};
  for (const at::Tensor& x : random_parameters(*method_)) inputs.differentiable.push_back(given(x));
  for (at::Tensor& x : inputs.differentiable) x.requires_grad_();
  if (layout.mask.defined()) inputs.layout.mask = layout.mask.to(options.device());
  return inputs;
}

at::Tensor MethodOnBackend::forward(const Inputs& inputs) const {
  const auto& all = inputs.differentiable;
  const Parameters parameters = Parameters(all).subspan(3);
  const at::Tensor k = with_key_columns(*method_, all[1], inputs.seen, 1, parameters);
  const at::Tensor q = with_query_columns(*method_, all[0], inputs.x, 1, parameters);
  return attend_with(*method_, q, k, all[2], inputs.layout, 1, parameters);
}

MethodOnBackend::Outcome MethodOnBackend::run(const Inputs& inputs) const {
  Outcome outcome = {.out = forward(inputs), .gradients = {}};
  outcome.gradients = torch::autograd::grad({outcome.out}, inputs.differentiable, {inputs.d_out},
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
  const Outcome expected = run(inputs_of(p, at::kDouble));
  const Inputs inputs = inputs_of(p, at::TensorOptions(type_).device(device_));
  const BackendOverride chosen(backend_);
  {
    // A call without gradients may run on another backend than one that trains.
    const at::NoGradGuard no_gradients;
    const at::Tensor out = forward(inputs).to(at::kCPU);
    EXPECT_LE(largest_difference(out, expected.out), tolerance() * largest(expected.out));
  }
  Outcome got = run(inputs);
  got.out = got.out.to(at::kCPU);
  for (at::Tensor& x : got.gradients)
    if (x.defined()) x = x.to(at::kCPU);
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
