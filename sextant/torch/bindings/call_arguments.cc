#include "sextant/torch/bindings/call_arguments.h"

#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/attention_mask.h"

namespace sextant {

std::vector<int64_t> cumulative(const char* argument, const std::vector<int64_t>& list,
                                const at::Tensor& sums) {
  if (!sums.defined()) return list;
  if ((sums.scalar_type() != at::kInt && sums.scalar_type() != at::kLong) || sums.dim() != 1)
    fail(std::string(argument) + ": expected int32 or int64 [sequences + 1], but got " +
         at::toString(sums.scalar_type()) + " of " + std::to_string(sums.dim()) + " dimensions");
  if (!sums.is_cpu())
    fail(std::string(argument) + ": expected a tensor on cpu, where plans are made, but got " +
         sums.device().str());
  const at::Tensor values = sums.to(at::kLong).contiguous();
  const int64_t* first = values.data_ptr<int64_t>();
  return {first, first + values.numel()};
}

std::vector<Frame> frames_of(const at::Tensor& table) {
  if (table.scalar_type() != at::kLong || table.dim() != 2 || table.size(1) != 7 || !table.is_cpu())
    fail("frames: expected int64 [frames, 7] on cpu, but got " +
         std::string(at::toString(table.scalar_type())) + " of " + std::to_string(table.dim()) +
         " dimensions on " + table.device().str());
  std::vector<Frame> frames;
  const auto at = table.accessor<int64_t, 2>();
  for (int64_t n = 0; n < table.size(0); ++n)
    frames.push_back({.batch = at[n][0],
                      .query_row = at[n][1],
                      .queries = at[n][2],
                      .query_position = at[n][3],
                      .key_row = at[n][4],
                      .keys = at[n][5],
                      .key_position = at[n][6]});
  return frames;
}

std::optional<DistanceWindow> window_of(const std::vector<int64_t>& sides) {
  if (sides.empty()) return {};
  if (sides.size() != 2)
    fail("window: expected [left, right], but got " + std::to_string(sides.size()) + " numbers");
  return DistanceWindow{sides[0], sides[1]};
}

void read_mask(const at::Tensor& mask, const at::Tensor& q, Layout& layout, CallTerms& terms) {
  const MaskParts parts = mask_parts(mask, {q.size(0), q.size(1), layout.queries, layout.keys});
  layout.mask = parts.shown;
  if (!parts.key_bias.defined()) return;
  if (terms.key_bias.defined())
    fail(
        "mask: expected one that hides (bool, or 0 and -infinity), as there is a key_bias, but "
        "got biases by key");
  terms.key_bias = parts.key_bias;
}

}  // namespace sextant
