#include "sextant/torch/operators/planned_call.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <utility>

#include "sextant/torch/operators/run.h"

namespace sextant {
namespace {

class Planned final : public AttendCall {
 public:
  explicit Planned(std::shared_ptr<const TensorPlan> plan) : plan_(std::move(plan)) {}

  std::tuple<at::Tensor, at::Tensor> forward(const TensorData& data, bool trains) const override {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return run_attend(data, *plan_, trains);
  }
  Gradients backward(const at::Tensor& d_out, const at::Tensor& out, const at::Tensor& lse,
                     const Wanted& wanted, const TensorData& data) const override {
    const at::AutoDispatchBelowADInplaceOrView guard;
    check_data(data);
    check_results(data, d_out, out, lse);
    return run_attend_backward(d_out, out, lse, wanted, data, *plan_);
  }

 private:
  std::shared_ptr<const TensorPlan> plan_;
};

class Shapes final : public AttendCall {
 public:
  std::tuple<at::Tensor, at::Tensor> forward(const TensorData& data, bool) const override {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return new_results(data);
  }
  Gradients backward(const at::Tensor&, const at::Tensor&, const at::Tensor&, const Wanted& wanted,
                     const TensorData& data) const override {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return new_gradients(data, wanted);
  }
};

}  // namespace

std::tuple<at::Tensor, at::Tensor> attend_planned(std::shared_ptr<const TensorPlan> plan,
                                                  const TensorData& data) {
  if (!wants_gradient(data)) return Planned(std::move(plan)).forward(data, /*trains=*/false);
  return differentiably(std::make_shared<Planned>(std::move(plan)), data);
}

std::tuple<at::Tensor, at::Tensor> attend_shapes(const TensorData& data) {
  return differentiably(std::make_shared<Shapes>(), data);
}

}  // namespace sextant
