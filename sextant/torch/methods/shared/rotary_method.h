// The method defined by a rotary plan. rope and xpos differ only in their plans.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/rotary_plan.h"

namespace sextant {

class RotaryMethod final : public Method {
 public:
  explicit RotaryMethod(RotaryPlan plan) : plan_(std::move(plan)) {}

  bool reads_rotary_positions() const override { return true; }
  bool relative() const override { return plan_.relative(); }
  std::vector<ParameterSpec> parameters() const override { return plan_.parameters(); }

  void apply(TensorOperands& operands, const Layout& layout, int64_t,
             Parameters parameters) const override {
    plan_.apply(operands, layout, parameters);
  }

 private:
  RotaryPlan plan_;
};

}  // namespace sextant
