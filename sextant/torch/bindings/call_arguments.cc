#include "sextant/torch/bindings/call_arguments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/isnan.h>

#include <limits>
#include <sstream>
#include <string>

#include "sextant/base/error.h"

namespace sextant {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

[[noreturn]] void bad_shape(const at::Tensor& mask, const MaskSizes& s) {
  std::ostringstream out;
  out << "mask: expected [keys], [queries, keys], [batch, keys] or [batch, heads, queries, keys] "
         "(sizes of 1 are shared) with batch "
      << s.batch << ", heads " << s.heads << ", queries " << s.queries << " and keys " << s.keys
      << ", but got " << mask.sizes();
  fail(out.str());
}

bool fits(int64_t size, int64_t all) { return size == 1 || size == all; }

at::Tensor with_four_dimensions(const at::Tensor& mask, const MaskSizes& s) {
  at::Tensor x = mask;
  if (x.dim() == 1) x = x.view({1, 1, 1, -1});
  if (x.dim() == 2) {
    const int64_t rows = x.size(0);
    const bool fits_queries = fits(rows, s.queries), fits_batch = fits(rows, s.batch);
    if (fits_queries && fits_batch && rows > 1)
      fail(
          "mask: expected [batch, 1, 1, keys] or [1, 1, queries, keys], as batch and queries are "
          "both " +
          std::to_string(rows) + ", but got [" + std::to_string(rows) + ", " +
          std::to_string(x.size(1)) + "], which may mean either");
    if (!fits_queries && !fits_batch) bad_shape(mask, s);
    x = fits_queries ? x.unsqueeze(0).unsqueeze(0) : x.unsqueeze(1).unsqueeze(1);
  }
  if (x.dim() != 4 || !fits(x.size(0), s.batch) || !fits(x.size(1), s.heads) ||
      !fits(x.size(2), s.queries) || !fits(x.size(3), s.keys))
    bad_shape(mask, s);
  return x;
}

double lowest(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return std::numeric_limits<c10::Half>::lowest();
    case at::kBFloat16:
      return std::numeric_limits<c10::BFloat16>::lowest();
    case at::kFloat:
      return std::numeric_limits<float>::lowest();
    default:
      return std::numeric_limits<double>::lowest();
  }
}

[[noreturn]] void refuse_dense_bias() {
  fail(
      "mask: expected a mask that hides (bool, or 0 and -infinity), or a bias that is the same for "
      "all queries that see a key, but got a bias by query and key. That is the matrix of queries "
      "x keys that Sextant does not read. Biases by distance are methods (alibi, t5, kerple-log, "
      "fire; a class of your own), biases by key are key_bias, and windows are window; "
      "torch.nn.functional.scaled_dot_product_attention adds any matrix");
}

}  // namespace

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

MaskParts mask_parts(const at::Tensor& mask, const MaskSizes& sizes) {
  const at::Tensor all = with_four_dimensions(mask, sizes);
  if (all.scalar_type() == at::kBool) return {.shown = all};
  if (!at::isFloatingType(all.scalar_type()))
    fail(std::string("mask: expected bool or a floating type, but got ") +
         at::toString(all.scalar_type()));
  if (all.requires_grad())
    fail(
        "mask: expected no gradient, but got a mask that needs one: key_bias has gradients, and "
        "so have the parameters of methods");
  if (at::isnan(all).any().item<bool>() || (all == kInfinity).any().item<bool>())
    fail("mask: expected numbers or -infinity, but got NaN or infinity");
  const at::Tensor hidden = all <= lowest(all.scalar_type());
  const at::Tensor most = all.masked_fill(hidden, -kInfinity).amax(2, /*keepdim=*/true);
  if (all.size(2) > 1 && !(hidden | (all == most)).all().item<bool>()) refuse_dense_bias();
  MaskParts parts;
  if (hidden.any().item<bool>()) parts.shown = hidden.logical_not();
  const at::Tensor bias = most.masked_fill(most == -kInfinity, 0).squeeze(2);
  if (bias.ne(0).any().item<bool>()) parts.key_bias = bias.expand({-1, -1, sizes.keys});
  return parts;
}

}  // namespace sextant
