// Every method on every backend, forward, backward and decoding, against the oracle in float64 over
// the same numbers. 4000 keys are enough for sums over keys to outgrow a narrow number.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/torch/operators/backend_choice.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"
#include "tests/torch/subjects.h"

namespace sextant::testing {
namespace {

using Tensors = std::vector<at::Tensor>;

struct MethodCase {
  std::string title, name, options;
  bool masked = false;
};

void PrintTo(const MethodCase& c, std::ostream* out) { *out << c.title; }

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

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

class EveryMethodAndBackend
    : public ::testing::TestWithParam<std::tuple<MethodCase, const Backend*>> {
 protected:
  const MethodCase& case_ = std::get<0>(GetParam());
  const Backend& backend_ = *std::get<1>(GetParam());
  const Subject& subject_ = subject(case_.name);
  const ModelShape shape_ = subject_.shape();
  const std::unique_ptr<Method> method_ = method_of(case_.name, shape_, case_.options);
  // The bound of the error relative to the largest result. It depends on the type of products.
  double tolerance() const { return backend_.products == DType::kBfloat16 ? 2e-2 : 2e-5; }

  struct Outcome {
    at::Tensor out;
    Tensors gradients;  // of q, k, v and parameters
  };

  // q, k, v and the parameters; values of float32 in any type.
  Tensors inputs_of(const Layer& layer, at::ScalarType type) const {
    Tensors inputs = {layer.q, layer.k, layer.v};
    for (const at::Tensor& x : random_parameters(*method_)) inputs.push_back(x);
    for (at::Tensor& x : inputs) x = x.to(at::kFloat).to(type);
    return inputs;
  }

  at::Tensor forward(const Tensors& inputs, const Layer& layer, const Layout& layout) const {
    const Parameters parameters = Parameters(inputs).subspan(3);
    const at::Tensor seen = layer.seen.to(at::kFloat).to(inputs[0].scalar_type());
    const at::Tensor k = with_key_columns(*method_, inputs[1], seen, 1, parameters);
    return attend_with(*method_, inputs[0], k, inputs[2], layout, 1, parameters);
  }

  Outcome run(const Layer& layer, const Layout& layout, at::ScalarType type) const {
    Tensors inputs = inputs_of(layer, type);
    for (at::Tensor& x : inputs) x.requires_grad_();
    Outcome outcome;
    outcome.out = forward(inputs, layer, layout);
    const at::Tensor above = normal(outcome.out.sizes().vec(), 5).to(at::kFloat).to(type);
    outcome.gradients = torch::autograd::grad({(outcome.out * above).sum()}, inputs, {},
                                              /*retain_graph=*/false, /*create_graph=*/false,
                                              /*allow_unused=*/true);
    return outcome;
  }

  Layout layout(int64_t queries, int64_t keys) const {
    Layout p = {.batch = 1, .queries = queries, .keys = keys, .first_query = keys - queries};
    // A hole, as left padding inside a batch leaves none.
    if (case_.masked) p.mask = at::arange(keys, at::kLong).remainder(7).ne(3).view({1, 1, 1, keys});
    return p;
  }

  void expect_agreement(int64_t queries, int64_t keys) const {
    SCOPED_TRACE(std::to_string(queries) + " queries, " + std::to_string(keys) + " keys");
    const Layout p = layout(queries, keys);
    const Layer layer(shape_, p);
    const Outcome expected = run(layer, p, at::kDouble);
    const BackendOverride chosen(backend_);
    // A call without gradients may run on another backend than one that trains.
    EXPECT_LE(largest_difference(forward(inputs_of(layer, at::kFloat), layer, p), expected.out),
              tolerance() * largest(expected.out));
    const Outcome got = run(layer, p, at::kFloat);
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
};

std::string title(const ::testing::TestParamInfo<EveryMethodAndBackend::ParamType>& info) {
  std::string backend(std::get<1>(info.param)->name);
  std::ranges::replace(backend, '-', '_');
  return std::get<0>(info.param).title + "_" + backend;
}
INSTANTIATE_TEST_SUITE_P(All, EveryMethodAndBackend,
                         ::testing::Combine(::testing::ValuesIn(method_cases()),
                                            ::testing::ValuesIn(backends().begin(),
                                                                backends().end())),
                         title);

TEST_P(EveryMethodAndBackend, AgreesWithTheOracleAt300Tokens) {
  expect_agreement(300, 300);
  expect_agreement(1, 300);  // decoding
}

TEST_P(EveryMethodAndBackend, AgreesWithTheOracleAt4000Tokens) {
  if (subject_.integrates) GTEST_SKIP() << case_.title << " integrates its positions in float32";
  expect_agreement(24, 4000);
  expect_agreement(1, 4000);
}

}  // namespace
}  // namespace sextant::testing
