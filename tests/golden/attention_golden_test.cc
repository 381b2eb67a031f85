// Compares every backend with official implementations.
//
// A float64 backend must reproduce the files' values. A float32 backend must reproduce the
// reference's results on the same rounded operands, within the bounds that all tests of backends
// share. Since the reference reproduces the files' values, this comparison is as strict.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/attention/bounds.h"
#include "tests/attention/host_backends.h"
#include "tests/golden/attention_cases.h"

namespace sextant::golden {
namespace {

using Case = std::tuple<AttentionCase, const Backend*>;

// Each case with each backend for which serves() is true.
std::vector<Case> cases(bool (*serves)(const Backend&)) {
  std::vector<Case> all;
  for (const AttentionCase& one : attention_cases()) {
    for (const Backend* backend : host_backends()) {
      if (serves(*backend)) all.emplace_back(one, backend);
    }
  }
  return all;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const auto& [one, backend] = info.param;
  std::string name = std::string(one.name) + "_" + std::string(backend->name);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

// Softmax and log-sum-exp of the rows of the file's scores.
struct Softmax {
  Doubles probabilities, lse;
};
Softmax softmax(const oracle::Tensor<double>& scores) {
  Softmax result{scores.data, {}};
  const auto columns = static_cast<size_t>(scores.columns);
  for (size_t row = 0; row < scores.data.size(); row += columns) {
    double most = -std::numeric_limits<double>::infinity(), total = 0;
    for (size_t j = 0; j < columns; ++j) most = std::max(most, scores.data[row + j]);
    for (size_t j = 0; j < columns; ++j) total += std::exp(scores.data[row + j] - most);
    result.lse.push_back(most + std::log(total));
    for (size_t j = 0; j < columns; ++j) {
      result.probabilities[row + j] = std::exp(scores.data[row + j] - result.lse.back());
    }
  }
  return result;
}

class AttentionGolden : public testing::TestWithParam<Case> {
 protected:
  const Golden golden_{std::string(std::get<0>(GetParam()).name)};
  const Trial trial_ = std::get<0>(GetParam()).trial(golden_);
  const Backend& backend_ = *std::get<1>(GetParam());
};

using Float64 = AttentionGolden;

TEST_P(Float64, GivesTheFilesNumbers) {
  const oracle::Result<double> result = oracle::attend(trial_.problem.score(), backend_);
  const oracle::Gradients<double> gradients =
      oracle::attend_backward(trial_.problem.score(), result, trial_.d_out, backend_);
  int compared = 0;
  for (const auto& [name, got] : trial_.answers(result, gradients)) {
    if (!golden_.has(name)) continue;
    EXPECT_EQ(difference(name, got, golden_.numbers(name), trial_.tolerance), "");
    ++compared;
  }
  EXPECT_GE(compared, 4) << "the result and three gradients";
  if (!trial_.scores.data.empty()) {
    const Softmax expected = softmax(trial_.scores);
    const auto weights = oracle::probabilities(trial_.problem.score(), backend_);
    EXPECT_EQ(difference("lse", result.lse.data, expected.lse, trial_.tolerance), "");
    EXPECT_EQ(
        difference("softmax of scores", weights.data, expected.probabilities, trial_.tolerance),
        "");
  }
}

using Float32 = AttentionGolden;

TEST_P(Float32, StaysWithinItsBounds) {
  const oracle::Problem<float> rounded = trial_.problem.as<float>();
  const oracle::Problem<double> same = rounded.as<double>();
  const oracle::Tensor<float> d_out = trial_.d_out.as<float>();
  const oracle::Tensor<double> d_same = d_out.as<double>();
  const oracle::Worst worst = oracle::worst_of_float32(rounded.score(), d_out.view(), same.score(),
                                                       d_same.view(), backend_);
  EXPECT_LE(worst.ratio, 1) << worst.where;
}

INSTANTIATE_TEST_SUITE_P(Golden, Float64, testing::ValuesIn(cases([](const Backend& b) {
                           return b.attend_f64 != nullptr;
                         })),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Golden, Float32, testing::ValuesIn(cases([](const Backend& b) {
                           return b.attend_f32 != nullptr && b.products == DType::kFloat32;
                         })),
                         case_name);

}  // namespace
}  // namespace sextant::golden
