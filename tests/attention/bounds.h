// The largest allowed difference between a float32 backend and float64 on the same operands. All
// tests of backends use these bounds.
//
// Each element has its own bound: a multiple of u = 2^-24 times the value it would have if all
// terms of its sum had the same sign. With w_ij = m_ij (|v_j| + |C|), where m_ij is the factor of
// dropout, and p_ij the attention weights of query i,
//
//   out       64 u sum_j p_ij w_ij                      lse   4e-6 + 4 u |lse|
//   v, C     128 u sum p_ij m_ij |dO_i|
//   bias     128 u sum K_ij,  K_ij = p_ij (|dO_i| . w_ij + sum_l p_il |dO_i| . w_il)
//   q, A     128 u sum K_ij scale |weight| (|rotated k_j| + |A|),  K_ij scale |weight| |q_i|
//   k, B     128 u sum K_ij scale |weight| (|rotated q_i| + |B|),  K_ij scale |weight| |k_j|
//   weight   128 u sum K_ij scale |<q, k>|
//   sink     128 u sum_i p_i,sink sum_l p_il |dO_i| . w_il
//
// K_ij bounds the gradient of s_ij, p (dP - D). Its weight p is an exponential of the score, so the
// score's rounding is part of it. The factors leave room for a few dozen roundings in a row (a
// score of width 256 summed in vector lanes, an exponential, the rescaling of an online softmax),
// not for errors that grow with the number of keys.
#pragma once

#include <string>

#include "sextant/attention/attend.h"
#include "sextant/attention/score.h"
#include "tests/attention/tensor.h"

namespace sextant::oracle {

// Weights below the least normal number may be flushed to zero, or have its absolute error.
inline constexpr double kLeastWeight = 0x1p-126, kLeastFloat16Weight = 0x1p-14;

// `exact`: the reference's result for `score`.
Result<double> result_bounds(const Score<double>& score, const Result<double>& exact,
                             double least_weight = kLeastWeight);
Gradients<double> gradient_bounds(const Score<double>& score, const Result<double>& exact,
                                  const AnyView<const double>& d_out,
                                  double least_weight = kLeastWeight);

// The greatest Euclidean norm of a row; 0 without rows.
double longest(const AnyView<const double>& rows);

// The greatest |got - exact| / bound, and the element where it occurs; a ratio over 1 is a failure.
// An element that is exact counts as 0; if only one of the two is NaN or infinite, the ratio is
// infinite.
struct Worst {
  double ratio = 0;
  std::string where = "nowhere";
};
template <class T>
Worst worst(const std::string& name, AnyView<const T> got, View<const double> exact,
            View<const double> bounds);

// Compares `backend` in float32 with the reference in float64, forward and backward. Both scores
// must hold the same values, and so must d_out and d_same.
Worst worst_of_float32(const Score<float>& score, const AnyView<const float>& d_out,
                       const Score<double>& same, const AnyView<const double>& d_same,
                       const Backend& backend, const Executor& executor = serial_executor());

}  // namespace sextant::oracle
