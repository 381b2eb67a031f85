// Shared by the property tests: problems that rapidcheck draws and shrinks, and comparisons of
// their outcomes.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "tests/attention/problem.h"
#include "tests/attention/random_score.h"
#include "tests/attention/tensor.h"

namespace sextant {

inline std::ostream& operator<<(std::ostream& out, const RandomOptions& options) {
  return out << to_string(options);
}

}  // namespace sextant

namespace sextant::oracle {

// Sizes and operands of a drawn problem, of those that Problem has; its values follow from the
// seed.
using Draw = RandomOptions;

rc::Gen<Draw> draws();

Problem<float> make_problem(const Draw& draw);

// Normally distributed values of variance 1.
Tensor<float> random_tensor(int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                            uint64_t seed);
Tensor<float> random_d_out(const Problem<float>& problem, uint64_t seed);

struct Outcome {
  Result<float> result;
  Gradients<float> gradients;
};
Outcome outcome(const Problem<float>& problem, const Tensor<float>& d_out, const Backend& backend,
                const Executor& executor = serial_executor());

// The bounds of tests/attention/bounds.h for this problem: two outcomes that are both within them
// differ by at most twice the bound.
struct Bounds {
  Result<double> result;
  Gradients<double> gradients;
};
Bounds bounds_of(const Problem<float>& problem, const Tensor<float>& d_out);

// Empty if all elements have the same bits (or are both NaN); else describes the first that differ.
std::string difference_in_bits(const std::string& what, const Tensor<float>& a,
                               const Tensor<float>& b);
// Empty if no two elements differ by more than twice the bound; else describes the first that do.
std::string difference(const std::string& what, const Tensor<float>& a, const Tensor<float>& b,
                       const Tensor<double>& bounds);

// Compares all tensors of two outcomes of the same shapes.
std::string difference_in_bits(const Outcome& a, const Outcome& b);

// Compares outcomes that were computed with different data in the rest of the call: bitwise if the
// backend is batch_invariant, else to a tolerance for rounding.
std::string difference_beside(const Backend& backend, const std::string& what,
                              const Tensor<float>& a, const Tensor<float>& b);
std::string difference_beside(const Backend& backend, const Outcome& a, const Outcome& b);
std::string difference(const Outcome& a, const Outcome& b, const Bounds& bounds);

// Each test runs once for each backend that computes products in float32.
class Property : public testing::TestWithParam<const Backend*> {
 protected:
  const Backend& backend() const { return *GetParam(); }
  // Checks many draws: `wrong` returns a description of the failure, or an empty string.
  void check(const std::function<std::string(const Draw&)>& wrong) const;
};
std::vector<const Backend*> float32_backends();
std::string backend_name(const testing::TestParamInfo<const Backend*>& info);

// Rows [first, first + count) of every head; batch_of: batch entries [first, first + count).
template <class T>
Tensor<T> rows_of(const Tensor<T>& x, int64_t first, int64_t count);
template <class T>
Tensor<T> batch_of(const Tensor<T>& x, int64_t first, int64_t count);

}  // namespace sextant::oracle
