// Checks that operands fit their plan and each other. Kernels rely on these checks, so they run
// before anything is written.
#pragma once

#include "sextant/attention/attend.h"

namespace sextant {

// All of these throw Error that names the field, its expected value and its value.

// Checks the scale and the sizes that q, k and v must share before a plan is prepared for them.
template <class T>
void check_qkv(const Operands<T>& operands, const Plan& plan);
template <class T>
void check_operands(const Operands<T>& operands, const PreparedPlan& plan);
// Checks the view of the result alone.
template <class T>
void check_out(const Operands<T>& operands, const AnyView<const T>& out);
template <class T>
void check_attended(const Operands<T>& operands, const Attended<const T>& attended);
template <class T>
void check_grad(const Operands<T>& operands, const Plan& plan, AnyView<const T> d_out,
                const ScoreGrad<T>& grad);

}  // namespace sextant
