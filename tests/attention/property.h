// What property tests share: problems that rapidcheck draws and shrinks, and how outcomes are
// compared.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "tests/attention/problem.h"
#include "tests/attention/tensor.h"

namespace sextant::oracle {

// Every size and operand that a drawn problem has; its numbers follow from the seed.
struct Draw {
  int64_t batch = 1, key_heads = 1, group = 1;  // group: query heads for each key head
  int64_t queries = 1,
          keys = 1;  // query i stands at keys - queries + i, and before 0 if there are more
  int64_t columns = 1, value_columns = 1;
  enum class KeyRanges { kCausal, kWhole, kWindow, kRagged } key_ranges = KeyRanges::kCausal;
  bool rotated = false, q_imag = false, weight = false, bias = false, on_query = false,
       on_key = false, on_value = false;
  bool sink = false;
  int64_t clip = 0;  // rows of tables by clipped distance, 2 clip + 1; 0: one row for each distance
  uint64_t seed = 0;
};
std::ostream& operator<<(std::ostream& out, const Draw& draw);

rc::Gen<Draw> draws();

Problem<float> make_problem(const Draw& draw);

// Normal numbers of variance 1.
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
// are not farther apart than twice that.
struct Bounds {
  Result<double> result;
  Gradients<double> gradients;
};
Bounds bounds_of(const Problem<float>& problem, const Tensor<float>& d_out);

// Empty if all elements are the same bits (or both NaN); else the first that are not.
std::string difference_in_bits(const std::string& what, const Tensor<float>& a,
                               const Tensor<float>& b);
// Empty if no element is farther from its twin than twice its bound.
std::string difference(const std::string& what, const Tensor<float>& a, const Tensor<float>& b,
                       const Tensor<double>& bounds);

// All tensors of two outcomes of the same shapes.
std::string difference_in_bits(const Outcome& a, const Outcome& b);

// As those where something else is computed beside it: of a backend whose bits depend on that, in
// what cannot be roundings.
std::string difference_beside(const Backend& backend, const std::string& what,
                              const Tensor<float>& a, const Tensor<float>& b);
std::string difference_beside(const Backend& backend, const Outcome& a, const Outcome& b);
std::string difference(const Outcome& a, const Outcome& b, const Bounds& bounds);

// One test for each backend that serves float32.
class Property : public testing::TestWithParam<const Backend*> {
 protected:
  const Backend& backend() const { return *GetParam(); }
  // Checks `holds`, which returns what is wrong, for many draws.
  void check(const std::function<std::string(const Draw&)>& wrong) const;
};
std::vector<const Backend*> float32_backends();
std::string backend_name(const testing::TestParamInfo<const Backend*>& info);

// Rows [first, first + count) of every head.
template <class T>
Tensor<T> rows_of(const Tensor<T>& x, int64_t first, int64_t count);
template <class T>
Tensor<T> batch_of(const Tensor<T>& x, int64_t first, int64_t count);

}  // namespace sextant::oracle
