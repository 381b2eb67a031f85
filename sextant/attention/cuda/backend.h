// A backend over a table of driver functions: the library's, or that of tests.
#pragma once

#include <string>
#include <string_view>

#include "sextant/attention/attend.h"
#include "sextant/attention/cuda/call.h"
#include "sextant/attention/cuda/device_plan.h"

namespace sextant::cuda {

// The functions of libsextant_cuda.so. Throws Error if why_no_cuda() is not empty.
const Driver& library_driver();

// machine(): the driver and the type of products. It may throw Error, if there is no device.
// Products of 16 bits are not batch invariant beside tables C and B: tensor cores sum their rows in
// groups, whose borders depend on the places of queries and keys in a tile.
template <Machine (*machine)()>
Backend backend_over(std::string_view name, std::string_view description, Device device,
                     bool batch_invariant = false, std::string (*why_not)() = nullptr) {
  return {
      .name = name,
      .description = description,
      .device = device,
      .batch_invariant = batch_invariant,
      .why_not = why_not,
      .make_plan = [](const Plan& plan, const PlanShape& shape, Passes passes,
                      const Context&) -> std::unique_ptr<BackendPlan> {
        check_sizes(plan, shape);
        return std::make_unique<DevicePlan>(*machine().driver, plan, shape, passes);
      },
      .attend_f32 =
          [](const Operands<float>& operands, const PreparedPlan& plan,
             const Attended<float>& result,
             const Context& context) { attend(machine(), operands, plan, result, context.stream); },
#ifndef SEXTANT_INFERENCE
      .attend_backward_f32 =
          [](const Operands<float>& operands, const PreparedPlan& plan,
             const Attended<const float>& result, AnyView<const float> d_out,
             const ScoreGrad<float>& grad, const Context& context) {
            attend_backward(machine(), operands, plan, result, d_out, grad, context.stream);
          },
#endif
  };
}

}  // namespace sextant::cuda
