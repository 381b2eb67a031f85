#include "sextant/torch/methods/shared/layer_positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

// [positions, width] -> [1, heads, positions, head_dim]
at::Tensor as_heads(const at::Tensor& rows, const at::Tensor& positions, int64_t heads) {
  const at::Tensor seen = rows.index_select(0, on_device_of(rows, positions));
  return seen.view({seen.size(0), heads, seen.size(1) / heads}).transpose(0, 1).unsqueeze(0);
}

}  // namespace

void check_injectable(const std::string& method, const ModelShape& shape) {
  if (shape.key_heads != shape.heads)
    fail(method + ": key_heads: expected " + std::to_string(shape.heads) +
         " (as many as query heads), but got " + std::to_string(shape.key_heads));
  if (shape.heads * shape.head_dim != shape.width)
    fail(method + ": width: expected heads * head_dim = " +
         std::to_string(shape.heads * shape.head_dim) + ", but got " + std::to_string(shape.width));
}

int64_t injected_rows(const Layout& layout) {
  int64_t rows = 0;
  for (const at::Tensor& positions : {query_positions(layout), key_positions(layout)})
    for (int64_t n = 0; n < positions.numel(); ++n) {
      const int64_t t = positions.data_ptr<int64_t>()[n];
      if (t < 0)
        fail("injected positions: expected positions of at least 0, but got " + std::to_string(t));
      rows = std::max(rows, t + 1);
    }
  return rows;
}

void add_layer_positions(TensorOperands& operands, const Layout& layout, const at::Tensor& rows) {
  const int64_t heads = operands.q.size(1);
  const at::Tensor queries = query_positions(layout), keys = key_positions(layout);
  // unbind instead of three selects: the gradient of each select would have the size of `rows`.
  const std::vector<at::Tensor> each = rows.unbind(1);
  operands.q = operands.q + as_heads(each[0], queries, heads);
  operands.k = operands.k + as_heads(each[1], keys, heads);
  operands.v = operands.v + as_heads(each[2], keys, heads);
}

}  // namespace sextant
