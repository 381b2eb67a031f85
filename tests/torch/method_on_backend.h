// Every method on a backend, forward, backward and decoding, against the oracle in float64 over the
// same numbers.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "sextant/attention/attend.h"
#include "tests/torch/model.h"

namespace sextant::testing {

struct MethodCase {
  std::string title, name, options;
  bool masked = false;
};

void PrintTo(const MethodCase& c, std::ostream* out);

// All methods, and a flavour of ALiBi with a mask. Tables have rows for 4096 positions.
std::vector<MethodCase> method_cases();

// A backend and the type of the tensors that it gets.
struct BackendCase {
  const Backend* backend = nullptr;
  at::ScalarType type = at::kFloat;
  at::DeviceType device = at::kCPU;
};

void PrintTo(const BackendCase& c, std::ostream* out);

class MethodOnBackend : public ::testing::TestWithParam<std::tuple<MethodCase, BackendCase>> {
 protected:
  const MethodCase& case_ = std::get<0>(GetParam());
  const Backend& backend_ = *std::get<1>(GetParam()).backend;
  const at::ScalarType type_ = std::get<1>(GetParam()).type;
  const at::DeviceType device_ = std::get<1>(GetParam()).device;
  const Subject subject_ = subject(case_.name);
  const ModelShape shape_ = subject_.shape();
  const std::unique_ptr<Method> method_ = method_of(case_.name, shape_, case_.options);

  using Tensors = std::vector<at::Tensor>;
  struct Outcome {
    at::Tensor out;
    Tensors gradients;  // of q, k, v and parameters
  };

  struct Inputs {
    Tensors differentiable;  // q, k, v and the parameters
    at::Tensor seen, x, d_out;
    Layout layout;
  };

  // The values of the case's type for a layer, with other options.
  Inputs inputs_of(const Layout& layout, const at::TensorOptions& options) const;
  Outcome run(const Inputs& inputs) const;

  void expect_agreement(int64_t queries, int64_t keys) const;
  Layout layout(int64_t queries, int64_t keys) const;

 private:
  double tolerance() const;
  at::Tensor forward(const Inputs& inputs) const;
};

// The title of a case, e.g. "kerple_log_cpu_bf16x3".
std::string title(const ::testing::TestParamInfo<MethodOnBackend::ParamType>& info);

}  // namespace sextant::testing
