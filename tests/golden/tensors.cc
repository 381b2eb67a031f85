#include "tests/golden/tensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

namespace sextant::golden {
namespace {

constexpr double kTolerance = 1e-12;

}  // namespace

at::Tensor tensor_of(const Golden& file, const std::string& array) {
  Doubles numbers = file.numbers(array);
  return at::from_blob(numbers.data(), file.shape(array), at::kDouble).clone();
}
at::Tensor integers_of(const Golden& file, const std::string& array) {
  std::vector<int64_t> numbers = file.integers(array);
  return at::from_blob(numbers.data(), file.shape(array), at::kLong).clone();
}

Tensors inputs(const Golden& file, const std::vector<std::string>& names) {
  Tensors tensors;
  for (const std::string& name : names) {
    if (file.has(name)) tensors[name] = tensor_of(file, name).requires_grad_(true);
  }
  return tensors;
}

void expect_equal(const Golden& file, const std::string& array, const at::Tensor& got) {
  ASSERT_TRUE(got.defined()) << array;
  const at::Tensor flat = got.detach().contiguous();
  const auto* data = flat.data_ptr<double>();
  EXPECT_EQ(difference(array, {data, data + flat.numel()}, file.numbers(array), kTolerance), "");
}

void expect_answers(const Golden& file, const at::Tensor& out, const std::string& gradient_of,
                    const Tensors& inputs, const std::string& prefix) {
  expect_equal(file, "out", out);
  (out * tensor_of(file, gradient_of)).sum().backward();
  for (const std::string& answer : file.answers()) {
    if (answer == "out") continue;
    const std::string name = answer.substr(prefix.size());
    ASSERT_TRUE(answer.starts_with(prefix) && inputs.contains(name)) << answer;
    expect_equal(file, answer, inputs.at(name).grad());
  }
}

}  // namespace sextant::golden
