// The data of a call as tensors: the operands of the score equation without their plan.
#pragma once

#include <ATen/core/Tensor.h>

#include <c10/core/SymInt.h>

#include <array>
#include <cstdint>
#include <vector>

#include "sextant/torch/operands.h"

namespace sextant {

// The differentiable operands, in the order of all lists of gradients:
// q, k, v, q_imag, weight, bias, on_query, on_key, on_value, sink, query_bias, key_bias.
inline constexpr size_t kDifferentiable = 12, kFirstTable = 4, kQueryBias = 10, kKeyBias = 11;
using Gradients = std::array<at::Tensor, kDifferentiable>;
using Wanted = std::array<bool, kDifferentiable>;

// Absent tensors are undefined. Shapes and types: flat_operands.h.
struct TensorData {
  at::Tensor q, k, v, q_imag;
  double scale = 1;
  at::Tensor weight, bias, on_query, on_key, on_value;
  at::Tensor weight_rows, bias_rows, on_query_rows, on_key_rows, on_value_rows;
  int64_t farthest = 0;
  at::Tensor query_bias, key_bias, sink, mask;
  at::Tensor pages;
  int64_t key_rows = 0;  // of pages
  std::vector<at::Tensor> int8_pages;
  double softcap = 0;
  DropoutOperand dropout;
  bool whole_lse = false;  // TensorOperands::whole_lse

  std::array<at::Tensor*, kDifferentiable> differentiable() {
    return {&q,        &k,      &v,        &q_imag, &weight,     &bias,
            &on_query, &on_key, &on_value, &sink,   &query_bias, &key_bias};
  }
};

TensorData data_of(const TensorOperands& operands);

// The number of key rows of an entry, as frames, ranges and rotary positions count them.
c10::SymInt key_rows(const TensorData& data);

// Pages of k or v, [pages, heads, page rows, columns], and those that are integers, if there are.
struct PagedRows {
  at::Tensor x, numbers = {}, scale = {};

  PagedRows(const at::Tensor& pages_of_x, const std::vector<at::Tensor>& int8_pages, bool keys)
      : x(pages_of_x) {
    if (int8_pages.empty()) return;
    numbers = int8_pages[keys ? 0 : 2];
    scale = int8_pages[keys ? 1 : 3];
  }
};

// The first `rows` rows of each entry of `pages`, [1 or batch, heads, rows, columns]; in the type
// of the scales if there are integers. Differentiable in x.
at::Tensor gathered(const PagedRows& from, const at::Tensor& pages, int64_t rows);

// Gathers k and v from their pages. The operation is differentiable: gradients flow back into the
// pages, and those of a shared page are summed. It copies all key rows.
void gather_pages(TensorData& data);

// Both throw Error that names an argument whose type, device or shape does not fit. Meta tensors
// and symbolic sizes are supported. check_plan() and check_operands() check the values of index
// tensors.
void check_data(const TensorData& data);
void check_results(const TensorData& data, const at::Tensor& d_out, const at::Tensor& out,
                   const at::Tensor& lse);

}  // namespace sextant
