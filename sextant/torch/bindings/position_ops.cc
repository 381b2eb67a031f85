// Positions that are computed from parameters, as operators for Python. They are ordinary tensor
// code, which autograd records.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/sin.h>
#include <torch/library.h>

#include <string>
#include <tuple>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/methods/shared/complex_words.h"
#include "sextant/torch/methods/shared/recurrences.h"

namespace sextant {
namespace {

std::vector<at::Tensor> listed(at::TensorList tensors) { return tensors.vec(); }

bool second(const std::string& option, const std::string& value, const char* first,
            const char* other) {
  if (value != first && value != other)
    fail(option + ": expected " + first + " or " + other + ", but got \"" + value + "\"");
  return value == other;
}

at::Tensor floater(const at::Tensor& start, at::TensorList weights, int64_t length,
                   const std::string& flow, const std::string& gradient) {
  return floater_positions(
      start, listed(weights), length,
      second("floater_positions: flow", flow, "linear", "convolution") ? Flow::kConvolution
                                                                       : Flow::kLinear,
      second("floater_positions: gradient", gradient, "solver", "adjoint") ? FlowGradient::kAdjoint
                                                                           : FlowGradient::kSolver);
}

at::Tensor gru(const at::Tensor& h0, at::TensorList weights, int64_t length) {
  return gru_positions(h0, listed(weights), length);
}

// r e^{i (w pos + theta)} of each token (Wang et al. 2020): ids and positions [batch, length];
// amplitudes r [tokens, D]; frequencies w [tokens, D], [D] or [tokens, 1]; phases theta [tokens,
// D], zeros in the official code. Real and imaginary parts, [batch, length, D] each.
std::tuple<at::Tensor, at::Tensor> complex_embedding(const at::Tensor& ids,
                                                     const at::Tensor& positions,
                                                     const at::Tensor& r, const at::Tensor& w,
                                                     at::TensorList theta) {
  const at::Tensor rotary_positions = positions.to(r.options()).unsqueeze(-1);
  const at::Tensor angle =
      angles_of_token_ids(ids, rotary_positions, w, theta.empty() ? at::Tensor() : theta[0]);
  const at::Tensor amplitude = of_words(r, ids);
  return {amplitude * angle.cos(), amplitude * angle.sin()};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sextant, library) {
  library.def(
      "floater_positions(Tensor start, Tensor[] weights, int length, str flow='linear', "
      "str gradient='solver') -> Tensor",
      floater);
  library.def("gru_positions(Tensor h0, Tensor[] weights, int length) -> Tensor", gru);
  library.def("tanh_positions(Tensor start, Tensor weight, Tensor bias, int length) -> Tensor",
              tanh_positions);
  library.def(
      "complex_embedding(Tensor ids, Tensor positions, Tensor r, Tensor w, Tensor[] theta) -> "
      "(Tensor, Tensor)",
      complex_embedding);
}

}  // namespace sextant
