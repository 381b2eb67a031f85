#include "sextant/torch/operators/whole_lse.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sextant/position/frame.h"

namespace sextant {
namespace {

std::vector<Frame> frames_of(const at::Tensor& frames) {
  const at::Tensor rows = frames.contiguous();
  std::vector<Frame> all;
  for (int64_t n = 0; n < rows.size(0); ++n) {
    const int64_t* f = rows.data_ptr<int64_t>() + n * 7;
    all.push_back({f[0], f[1], f[2], f[3], f[4], f[5], f[6]});
  }
  return all;
}

// The last key row that each query sees in any sweep, int64 [batch, queries]; -1: it sees none.
at::Tensor last_keys(const TensorOperands& o) {
  const int64_t batch = o.q.size(0), queries = o.q.size(2);
  at::Tensor last = at::full({batch, queries}, -1, at::kLong);
  for (const SweepOperand& sweep : o.sweeps) {
    const at::Tensor ranges = sweep.key_ranges.contiguous();
    const int64_t stride = ranges.size(0) > 1 ? queries : 0;
    for (const Frame& frame : frames_of(o.frames)) {
      const bool every = frame.batch == kEveryBatch;
      for (int64_t b = every ? 0 : frame.batch; b < (every ? batch : frame.batch + 1); ++b)
        for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i) {
          const int64_t* range = ranges.data_ptr<int64_t>() + (b * stride + i) * 2;
          const int64_t from = std::max(range[0], frame.key_row);
          const int64_t to = std::min(range[1], frame.key_row + frame.keys);
          int64_t& row = last.data_ptr<int64_t>()[b * queries + i];
          if (from < to) row = std::max(row, to - 1);
        }
    }
  }
  return last;
}

// The key_bias of that key, float64 [batch, heads, queries]; 0 if there is none or it is not
// finite.
at::Tensor bias_of_last_key(const TensorOperands& o) {
  const at::Tensor last = last_keys(o).unsqueeze(1).expand({-1, o.q.size(1), -1});
  const at::Tensor bias =
      o.key_bias.detach().expand({o.q.size(0), o.q.size(1), -1}).gather(2, last.clamp_min(0));
  return bias.masked_fill(last.lt(0) | bias.isfinite().logical_not(), 0);
}

}  // namespace

at::Tensor whole_lse(const TensorOperands& o, const at::Tensor& lse) {
  if (o.q.is_meta()) return lse;
  // Biases and shifts may be sums over thousands of keys, of which the differences matter.
  at::Tensor more = o.query_shift;
  if (o.key_bias.defined() && o.key_bias.size(-1) > 0) {
    const at::Tensor bias = bias_of_last_key(o);
    more = more.defined() ? more + bias : bias;
  }
  return more.defined() ? lse + more.to(lse.options()) : lse;
}

}  // namespace sextant
