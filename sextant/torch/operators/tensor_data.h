// The data of a call as tensors: the operands of the score equation without their plan.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sextant/attention/operand_list.h"
#include "sextant/torch/operands.h"

namespace sextant {

static_assert(lists_operands<OperandTensors>(),
              "operands.h: OperandTensors has other members than the list of operands");

// Lists of the operands with gradients, in the order of operand_list.h.
using Gradients = std::array<at::Tensor, kDifferentiable>;
using Wanted = std::array<bool, kDifferentiable>;

inline at::Tensor& tensor_of(at::Tensor& x) { return x; }
inline at::Tensor& tensor_of(TableOperand& x) { return x.rows; }
inline const at::Tensor& tensor_of(const at::Tensor& x) { return x; }
inline const at::Tensor& tensor_of(const TableOperand& x) { return x.rows; }

// Calls f(entry of the list, its tensor) for all operands.
template <class Tensors, class F>
void each_tensor(Tensors& operands, F&& f) {
  each_operand([&](auto operand) { f(operand, tensor_of(operand.of(operands))); });
}

std::array<at::Tensor*, kDifferentiable> differentiable(OperandTensors& operands);

// The part [first, first + count) of an operand along its axis, if it has one; shared sizes of 1
// stay.
template <class Entry>
void narrow_to(Entry operand, Axis axis, int64_t first, int64_t count, at::Tensor& x) {
  if (!operand.has(axis) || !x.defined()) return;
  if (operand.may_share(axis) && x.size(operand.dim(axis)) == 1) return;
  x = x.narrow(operand.dim(axis), first, count);
}

// The tensors of an axis in TensorData::axes: positions of queries and keys, int64 [1] with the
// distance of entry 0, and the maps to rows of axis_bias and axis_on_query, of no elements if the
// axis has none.
inline constexpr size_t kAxisTensors = 5;
enum AxisTensor : uint8_t { kAxisQueries, kAxisKeys, kAxisFarthest, kAxisBias, kAxisOnQuery };

// Calls f(the tensors of an axis) for each axis. check_data() must have accepted the data.
template <class F>
void each_axis(const std::vector<at::Tensor>& axes, F&& f) {
  for (size_t n = 0; n + kAxisTensors <= axes.size(); n += kAxisTensors) f(axes.data() + n);
}

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

// Checks of type, shape and device of one tensor argument of attend. Symbolic sizes are supported.

// The permitted sizes of one dimension.
struct Size {
  enum Rule { kAny, kExactly, kOneOr } rule = kAny;
  c10::SymInt size = 0;

  Size() = default;
  Size(Rule r, c10::SymInt n) : rule(r), size(std::move(n)) {}
  Size(int64_t n) : rule(kExactly), size(n) {}  // NOLINT(google-explicit-constructor)
  bool accepts(const c10::SymInt& got) const {
    return rule == kAny || got == size || (rule == kOneOr && got == 1);
  }
};

// Throws Error: "attend: ARGUMENT: expected EXPECTED, but got GOT".
[[noreturn]] void refuse(const std::string& argument, const std::string& expected,
                         const std::string& got);

// "Float [2, 3]"
std::string type_and_sizes(const at::Tensor& x);

// Throws Error if x is on a device: plans are made on the CPU. Meta tensors are accepted if `meta`.
void check_on_cpu(const char* argument, const at::Tensor& x, bool meta = false);

// Both throw Error unless x is undefined or has the type and the sizes.
void check_tensor(const char* argument, const at::Tensor& x, at::ScalarType type,
                  const std::vector<Size>& sizes);
// For data: x must be on the device of q, and its type must be computed in the same type as q's.
void check_like_q(const char* argument, const at::Tensor& x, const at::Tensor& q,
                  const std::vector<Size>& sizes);

}  // namespace sextant
