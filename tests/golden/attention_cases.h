// Golden cases of attention without trained vectors, each as one call and its results by the file's
// names.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "tests/attention/problem.h"
#include "tests/golden/golden.h"

namespace sextant::golden {

struct Trial {
  oracle::Problem<double> problem;
  oracle::Tensor<double> d_out;
  oracle::Tensor<double> scores;  // the inputs of softmax, [B, H, Q, K]; empty: not in the file
  double tolerance = 1e-12;
  // The official module's outputs and gradients, from attention's.
  std::function<std::map<std::string, Doubles>(const oracle::Result<double>&,
                                               const oracle::Gradients<double>&)>
      answers;
};

struct AttentionCase {
  std::string_view name;
  Trial (*trial)(const Golden&);
};

std::span<const AttentionCase> attention_cases();

}  // namespace sextant::golden
