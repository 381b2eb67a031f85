// The two passes of a call: memory for rotated rows and sums, and the launches, in order.
#pragma once

#include "sextant/attention/attend.h"
#include "sextant/attention/cuda/driver.h"

namespace sextant::cuda {

// The type of products: kOfOperands multiplies operands of 16 bits as they are stored, and rounds
// weights and gradients of scores to that type; kFloat32 multiplies float32 always.
enum class Products { kOfOperands, kFloat32 };

struct Machine {
  const Driver* driver;
  Products products = Products::kOfOperands;
};

void attend(const Machine& machine, const Operands<float>& operands, const PreparedPlan& plan,
            const Attended<float>& result, void* stream);
void attend_backward(const Machine& machine, const Operands<float>& operands,
                     const PreparedPlan& plan, const Attended<const float>& result,
                     AnyView<const float> d_out, const ScoreGrad<float>& grad, void* stream);

}  // namespace sextant::cuda
