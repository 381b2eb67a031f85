#include "sextant/torch/attention_mask.h"

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
