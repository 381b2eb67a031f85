#include "sextant/torch/operators/whole_lse.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <vector>

#include "sextant/attention/key_bias.h"
#include "sextant/torch/operators/tensor_values.h"
#include "sextant/torch/operators/views.h"

namespace sextant {
namespace {

// The bias that kernels subtract from the scores of each query, float64 [batch, heads, queries] on
// the CPU. The biases of another device are copied, so the call waits for it.
at::Tensor subtracted_bias(const TensorOperands& o) {
  const int64_t batch = o.q.size(0), heads = o.q.size(1), queries = o.q.size(2);
  std::vector<std::vector<KeyRange>> ranges;
  std::vector<Sweep> sweeps;
  for (const SweepOperand& sweep : o.sweeps) {
    ranges.push_back(values_of<KeyRange>(sweep.key_ranges));
    sweeps.push_back({.key_ranges = ranges.back().data(),
                      .batch_stride = sweep.key_ranges.size(0) > 1 ? queries : 0});
  }
  const at::Tensor bias = o.key_bias.detach().to(at::kCPU).expand({batch, heads, -1});
  const HostView view(view_rows<const double>(bias));
  const KeyBiasOrigins origins(view, values_of<Frame>(o.frames), sweeps, queries);
  at::Tensor all = at::empty({batch, heads, queries}, at::kDouble);
  double* to = all.data_ptr<double>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < queries; ++i) *to++ = origins.at(b, h, i);
  return all;
}

}  // namespace

at::Tensor whole_lse(const TensorOperands& o, const at::Tensor& lse) {
  if (o.q.is_meta()) return lse;
  // Biases and shifts may be sums over thousands of keys, of which the differences matter.
  at::Tensor more = o.query_shift;
  if (o.key_bias.defined() && o.key_bias.size(-1) > 0) {
    const at::Tensor bias = subtracted_bias(o).to(o.q.device());
    more = more.defined() ? more + bias : bias;
  }
  return more.defined() ? lse + more.to(lse.options()) : lse;
}

}  // namespace sextant
