// torch.ops.sextant.rotate: RoPE with exact phases, outside attention.
//
// The gradient is rotated in the opposite direction: a rotation's transpose is its inverse.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <string>

#include "sextant/base/error.h"
#include "sextant/position/spectrum.h"
#include "sextant/position/turns.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/rotary_options.h"
#include "sextant/torch/methods/shared/rotary_plan.h"
#include "sextant/torch/operators/operator_tags.h"
#include "sextant/torch/operators/rotated_rows.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Angles {
  at::Tensor cos, sin;  // [1 or batch, 1, rows, pairs]
};

Angles angles(const at::Tensor& rotary_positions, const Spectrum& spectrum) {
  const Rotation plan = rotation(spectrum);
  const int64_t batch = rotary_positions.size(0), rows = rotary_positions.size(2);
  const auto pairs = static_cast<int64_t>(plan.pairs.size());
  Angles result = {at::empty({batch, 1, rows, pairs}, at::kDouble),
                   at::empty({batch, 1, rows, pairs}, at::kDouble)};
  double* cos = result.cos.data_ptr<double>();
  double* sin = result.sin.data_ptr<double>();
  const auto time = rotary_positions.accessor<int64_t, 3>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t row = 0; row < rows; ++row)
      for (const Rotation::Pair& pair : plan.pairs) {
        const CosSin angle = cos_sin(pair.frequency * time[b][pair.axis][row]);
        *cos++ = angle.cos;
        *sin++ = angle.sin;
      }
  return result;
}

at::Tensor rotate_kernel(const at::Tensor& x, const at::Tensor& rotary_positions,
                         c10::string_view options, bool back) {
  if (x.dim() != 4)
    fail("rotate: x: expected [batch, heads, rows, columns], but got " + std::to_string(x.dim()) +
         " dimensions");
  const Spectrum spectrum = rope_spectrum("rotate", std::string(options), x.size(3));
  const Layout layout = {
      .batch = x.size(0), .queries = x.size(2), .query_rotary_positions = rotary_positions};
  const at::Tensor at = query_rotary_positions(layout, axes_of(spectrum));
  const Spectrum forth_or_back = back ? clockwise(spectrum) : spectrum;
  // A gain (YaRN's) multiplies rotated columns in both directions: the transpose has the same gain.
  if (x.is_cpu() && wide_type(x) == at::kFloat) return rotated_rows(x, at, rotation(forth_or_back));
  // The angles of a device are computed on the CPU, too.
  const Angles a = angles(at, forth_or_back);
  const at::Tensor wide = to_float(x);
  return rotated(wide, a.cos.mul_(spectrum.gain).to(wide.options()),
                 a.sin.mul_(spectrum.gain).to(wide.options()), spectrum)
      .contiguous()
      .to(x.scalar_type());
}

at::Tensor rotate_meta(const at::Tensor& x, const at::Tensor&, c10::string_view, bool) {
  return at::empty_symint(x.sym_sizes(), x.options());
}

at::Tensor dispatched(const at::Tensor& x, const at::Tensor& rotary_positions,
                      const std::string& options, bool back) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("sextant::rotate", "")
          .typed<at::Tensor(const at::Tensor&, const at::Tensor&, c10::string_view, bool)>();
  return op.call(x, rotary_positions, options, back);
}

class RotateFunction : public torch::autograd::Function<RotateFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& rotary_positions, const std::string& options,
                            bool back) {
    context->save_for_backward({rotary_positions});
    context->saved_data["options"] = options;
    context->saved_data["back"] = back;
    const at::AutoDispatchBelowADInplaceOrView guard;
    return dispatched(x, rotary_positions, options, back);
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_out) {
    return {dispatched(d_out[0], context->get_saved_variables()[0],
                       context->saved_data["options"].toStringRef(),
                       !context->saved_data["back"].toBool()),
            {},
            {},
            {}};
  }
};

at::Tensor rotate_autograd(const at::Tensor& x, const at::Tensor& rotary_positions,
                           c10::string_view options, bool back) {
  return RotateFunction::apply(x, rotary_positions, std::string(options), back);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sextant, library) {
  const std::vector<at::Tag> tags = operator_tags();
  library.def(
      "rotate(Tensor x, Tensor rotary_positions, str options='{}', bool back=False) -> Tensor",
      tags);
}
TORCH_LIBRARY_IMPL(sextant, CPU, library) { library.impl("rotate", rotate_kernel); }
TORCH_LIBRARY_IMPL(sextant, CUDA, library) { library.impl("rotate", rotate_kernel); }
TORCH_LIBRARY_IMPL(sextant, Meta, library) { library.impl("rotate", rotate_meta); }
TORCH_LIBRARY_IMPL(sextant, Autograd, library) { library.impl("rotate", rotate_autograd); }

}  // namespace sextant
