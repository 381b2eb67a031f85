// Every backend against the official implementations.
//
// A backend of float64 must give the files' numbers. One of float32 must give what the reference gives
// on the same rounded operands, within the bounds that all tests of backends share; the reference
// itself gives the files' numbers, so nothing is lost by the detour.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <limits>

#include "tests/golden/trial.h"
#include "tests/oracle/bounds.h"

namespace sextant::golden {
namespace {

std::vector<std::string> attention_cases() {
  std::vector<std::string> names;
  for (const auto& [name, path] : golden_files()) {
    if (family_of(name)) names.push_back(name);
  }
  return names;
}

std::vector<const Backend*> all_backends() { return {backends().begin(), backends().end()}; }

// softmax and log-sum-exp of the rows of the file's scores.
struct Softmax {
  Numbers probabilities, lse;
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

class AttentionGolden : public testing::TestWithParam<std::tuple<std::string, const Backend*>> {
 protected:
  AttentionGolden()
      : golden_(golden_files().at(std::get<0>(GetParam()))),
        trial_(family_of(golden_.name())->trial(golden_)),
        backend_(*std::get<1>(GetParam())) {}

  Golden golden_;
  Trial trial_;
  const Backend& backend_;
};

TEST_P(AttentionGolden, Float64GivesTheFilesNumbers) {
  if (backend_.attend_f64 == nullptr) GTEST_SKIP() << backend_.name << " serves float32 only";
  const oracle::Result<double> result = oracle::attend(trial_.problem, backend_);
  oracle::Gradients<double> gradients;
  const bool has_gradients = !trial_.d_out.data.empty();
  if (has_gradients) {
    gradients = oracle::attend_backward(trial_.problem, result, trial_.d_out, backend_);
  }
  const auto answers = trial_.answers(result, gradients);
  for (const std::string& name : golden_.answers()) {
    ASSERT_TRUE(answers.contains(name)) << name << " is in the file, but nobody computes it";
    EXPECT_EQ(difference(name, answers.at(name), golden_.numbers(name), trial_.tolerance), "");
  }
  if (!trial_.scores.data.empty()) {
    const Softmax expected = softmax(trial_.scores);
    const auto weights = oracle::probabilities(trial_.problem, backend_);
    EXPECT_EQ(difference("lse", result.lse.data, expected.lse, trial_.tolerance), "");
    EXPECT_EQ(
        difference("softmax of scores", weights.data, expected.probabilities, trial_.tolerance),
        "");
  }
}

TEST_P(AttentionGolden, Float32StaysWithinItsBounds) {
  if (backend_.attend_f32 == nullptr) GTEST_SKIP() << backend_.name << " serves float64 only";
  oracle::Tensor<double> d_out = trial_.d_out;
  if (d_out.data.empty()) {
    const auto result = oracle::attend(trial_.problem, reference_backend());
    d_out = result.out;  // anything will do
  }
  const oracle::Worst worst = oracle::worst_of_float32(trial_.problem, d_out, backend_);
  EXPECT_LE(worst.ratio, 1) << worst.where;
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionGolden,
                         testing::Combine(testing::ValuesIn(attention_cases()),
                                          testing::ValuesIn(all_backends())),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + "_" +
                                              std::string(std::get<1>(info.param)->name);
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace sextant::golden
