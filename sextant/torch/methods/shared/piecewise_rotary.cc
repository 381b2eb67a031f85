#include "sextant/torch/methods/shared/piecewise_rotary.h"

#include <ATen/TensorOperators.h>

#include "sextant/position/query_scale.h"
#include "sextant/torch/methods/shared/tensors.h"

namespace sextant {
namespace {

constexpr int64_t kFar = int64_t{1} << 52;

void scale_by_log_n(TensorOperands& operands, const Layout& layout, int64_t length) {
  if (length == 0) return;
  const at::Tensor positions = query_positions(layout);
  const std::vector<double> factors =
      query_factors({.law = QueryLaw::kLogn, .length = length},
                    {positions.data_ptr<int64_t>(), static_cast<size_t>(positions.numel())});
  const at::Tensor by = tensor_of(factors, {1, 1, positions.numel(), 1}, operands.q);
  operands.q = operands.q * by.to(operands.q.options());
}

}  // namespace

std::vector<Turns> phases(const Spectrum& spectrum, Real distance) {
  std::vector<Turns> result;
  for (const Spectrum::Pair& pair : spectrum.pairs)
    result.push_back(turns(pair.frequency * distance));
  return result;
}

Spectrum slowed(Spectrum spectrum, Real factor) {
  for (Spectrum::Pair& pair : spectrum.pairs) pair.frequency = pair.frequency / factor;
  return spectrum;
}

void PiecewiseRotary::apply(TensorOperands& operands, const Layout& layout, int64_t,
                            Parameters) const {
  scale_by_log_n(operands, layout, log_n_);
  const at::Tensor key_ranges = operands.sweeps.at(0).key_ranges;
  const at::Tensor near = near_ranges(layout, window_ - 1, window_ - 1);
  const at::Tensor queries = query_rotary_positions(layout, 1),
                   keys = key_rotary_positions(layout, 1);
  const SweepOperand beyond = {.rotation = far_.rotation,
                               .query_rotary_positions = far_.positions(queries),
                               .key_rotary_positions = far_.positions(keys)};
  SweepOperand past = beyond;
  past.key_ranges = before(key_ranges, near);
  past.query_offset = far_.offset;
  operands.sweeps = {{.key_ranges = intersection(key_ranges, near),
                      .rotation = within_,
                      .query_rotary_positions = queries,
                      .key_rotary_positions = keys},
                     past};
  if (layout.causal) return;
  SweepOperand future = beyond;
  future.key_ranges = after(key_ranges, near);
  future.key_offset = far_.offset;
  operands.sweeps.push_back(future);
}

int64_t window_length(const Options& options, int64_t otherwise) {
  return options.integer_or("window", otherwise, 1, kFar);
}

int64_t log_n_length(const Options& options) {
  const int64_t length = options.integer_or("log_n", 0, 0, kFar);
  if (length == 1) options.refuse("log_n", "null or at least 2");
  return length;
}

}  // namespace sextant
