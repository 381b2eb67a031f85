#include "sextant/torch/operators/rotated_rows.h"

#include <utility>

#include "sextant/attention/rotary/rotate.h"
#include "sextant/torch/operators/device_call.h"
#include "sextant/torch/operators/kept.h"
#include "sextant/torch/operators/views.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class RotatedRows : public torch::autograd::Function<RotatedRows> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& rotary_positions, const Rotation* rotation) {
    Rotation back = *rotation;
    for (Rotation::Pair& pair : back.pairs) pair.frequency = Turns{} - pair.frequency;
    keep(context, std::move(back));
    context->save_for_backward({rotary_positions});
    return rotated_rows(x, rotary_positions, *rotation);
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_out) {
    const at::Tensor rotary_positions = context->get_saved_variables()[0];
    return {rotated_rows(d_out[0], rotary_positions, kept<Rotation>(context)), {}, {}};
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
