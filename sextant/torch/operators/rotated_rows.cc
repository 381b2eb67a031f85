#include "sextant/torch/operators/rotated_rows.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include "sextant/attention/rotary/rotate.h"
#include "sextant/torch/operators/executor.h"
#include "sextant/torch/operators/views.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct KeptRotation : torch::CustomClassHolder {
  Rotation back;
};

class RotatedRows : public torch::autograd::Function<RotatedRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& rotary_positions, const Rotation* rotation) {
    auto kept = c10::make_intrusive<KeptRotation>();
    kept->back = *rotation;
    for (Rotation::Pair& pair : kept->back.pairs) pair.speed = Turns{} - pair.speed;
    context->saved_data["back"] = at::IValue::make_capsule(std::move(kept));
    context->save_for_backward({rotary_positions});
    return rotated_rows(x, rotary_positions, *rotation);
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_out) {
    const auto capsule = context->saved_data.at("back").toCapsule();
    const Rotation& back = static_cast<const KeptRotation&>(*capsule).back;
    return {rotated_rows(d_out[0], context->get_saved_variables()[0], back), {}, {}};
  }
};

}  // namespace

at::Tensor rotated_rows(const at::Tensor& x, const at::Tensor& rotary_positions,
                        const Rotation& rotation) {
  const at::Tensor out = x.detach().to(at::kFloat, /*non_blocking=*/false, /*copy=*/true,
                                       at::MemoryFormat::Contiguous);
  const HostView rows(view_4d<float>(out));
  rotate_rows({&rows, 1},
              {.rotation = &rotation,
               .rotary_positions = rotary_positions.data_ptr<int64_t>(),
               .batch_stride = rotary_positions.size(0) == 1 ? 0 : rotary_positions.stride(0),
               .axis_stride = rotary_positions.stride(1),
               .row_stride = rotary_positions.stride(2)},
              torch_executor());
  return out.to(x.scalar_type());
}

at::Tensor differentiably_rotated_rows(const at::Tensor& x, const at::Tensor& rotary_positions,
                                       const Rotation& rotation) {
  return RotatedRows::apply(x, rotary_positions, &rotation);
}

}  // namespace sextant
