// How far a float32 backend may stray from float64 on the same operands: one place for the bounds that
// all tests of backends use.
//
// With u = 2^-24, each element has its own bound, a multiple of u times what it would be if all that
// is summed had one sign:
//
//   out   64 u  sum_j p_ij (|v_j| + |C|)                         lse   4e-6 + 4 u |lse|
//   v, C  128 u sum p_ij |dO_i|
//   bias  128 u sum K_ij      K_ij = p_ij (|dO_i| . (|v_j| + |C|) + sum_l p_il |dO_i| . (|v_l| + |C|))
//   q, A  128 u sum K_ij scale (|k'_j| + |A|), 128 u sum K_ij scale |q_i|; k and B alike
//   sink  128 u sum_i p_i,sink sum_l p_il |dO_i| . (|v_l| + |C|)
//
// K_ij bounds the gradient of s_ij, p (dP - D). The factors leave room for a few dozen roundings in
// a row (a score of width 256 in lanes, an exponential, the rescaling of an online softmax), not for
// sums in which errors pile up with the length.
#pragma once

#include <string>

#include "tests/oracle/problem.h"

namespace sextant::oracle {

// Of the shapes of what they bound; `exact` is what the reference gives for `problem`.
Result<double> result_bounds(const Problem<double>& problem, const Result<double>& exact);
Gradients<double> gradient_bounds(const Problem<double>& problem, const Tensor<double>& d_out);

// The greatest |got - exact| / bound, and where it is; more than 1 is a failure. An element that is
// exact counts as 0, one that is NaN as infinite, and infinities must agree.
struct Worst {
  double ratio = 0;
  std::string where;
};
template <class T>
Worst worst(const std::string& name, const std::vector<T>& got, const std::vector<double>& exact,
            const std::vector<double>& bounds);
template <class T>
Worst worst(const Result<T>& got, const Result<double>& exact, const Result<double>& bounds);
template <class T>
Worst worst(const Gradients<T>& got, const Gradients<double>& exact,
            const Gradients<double>& bounds);

// The whole comparison, forward and backward: `backend` in float32 against the reference in float64, on
// operands rounded to float32.
Worst worst_of_float32(const Problem<double>& problem, const Tensor<double>& d_out,
                       const Backend& backend, const Executor& executor = serial_executor());

}  // namespace sextant::oracle
