// Linear layers before attention, as in official modules: applied once, and differentiated with
// respect to the file's arrays.
#pragma once

#include <map>
#include <string>

#include "tests/golden/golden.h"
#include "tests/golden/linear.h"

namespace sextant::golden {

using Answers = std::map<std::string, Doubles>;

// Adds to the gradient that is already there: an array that is used twice has the sum of both.
inline void add_answer(Answers& answers, const std::string& name, const Doubles& gradient) {
  Doubles& sum_so_far = answers[name];
  sum_so_far = sum_so_far.empty() ? gradient : sum(sum_so_far, gradient);
}

// y = x w^T + b, where x, w and b name arrays of the file; b is optional.
struct Projection {
  std::string x, w, b;

  int64_t inputs(const Golden& golden) const { return golden.shape(x).back(); }

  Doubles forward(const Golden& golden) const {
    return linear(golden.numbers(x), golden.numbers(w), inputs(golden),
                  golden.has(b) ? golden.numbers(b) : Doubles());
  }

  void backward(const Golden& golden, const Doubles& dy, Answers& answers) const {
    add_answer(answers, "grad_" + x, linear_d_input(dy, golden.numbers(w), inputs(golden)));
    add_answer(answers, "grad_" + w, linear_d_weight(dy, golden.numbers(x), inputs(golden)));
    if (golden.has(b)) add_answer(answers, "grad_" + b, column_sums(dy, golden.shape(b)[0]));
  }
};

}  // namespace sextant::golden
