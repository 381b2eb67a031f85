#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/check_score.h"
#include "sextant/c/handles.h"

namespace sextant::c {
namespace {

std::array<int64_t, 4> sizes_of(const sextant_array& array) {
  return {array.batch, array.heads, array.rows, array.columns};
}

// "1 x 2 x 3 x 4"
std::string shape_of(const sextant_array& array) {
  std::string text;
  for (const int64_t size : sizes_of(array))
    text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

}  // namespace

DType dtype_of(sextant_dtype dtype, const char* name) {
  switch (dtype) {
    case SEXTANT_FLOAT32:
      return DType::kFloat32;
    case SEXTANT_BFLOAT16:
      return DType::kBfloat16;
    case SEXTANT_FLOAT16:
      return DType::kFloat16;
    case SEXTANT_INT8:
      break;
  }
  fail(std::string(name) + ".dtype: expected SEXTANT_FLOAT32, SEXTANT_BFLOAT16 or " +
       "SEXTANT_FLOAT16, or SEXTANT_INT8 for a cache, but got " +
       std::to_string(static_cast<int>(dtype)));
}

AnyView<float> view_of(const sextant_array& array, const char* name) {
  int64_t bound = 1;
  for (const int64_t size : sizes_of(array)) {
    if (size < 0)
      fail(std::string(name) + ": expected sizes of at least 0, but got " + std::to_string(size));
    if (size > kLargestView / bound)
      fail(std::string(name) + ": expected at most 2^60 elements, but got " + shape_of(array));
    bound *= std::max<int64_t>(size, 1);
  }
  AnyView<float> view;
  view.data = array.data;
  view.batch = array.batch, view.heads = array.heads;
  view.rows = array.rows, view.columns = array.columns;
  view.batch_stride = array.batch_stride, view.head_stride = array.head_stride;
  view.row_stride = array.row_stride, view.column_stride = array.column_stride;
  view.dtype = dtype_of(array.dtype, name);
  return view;
}

AnyView<float> operand_of(const sextant_array& array, const char* name) {
  const AnyView<float> view = view_of(array, name);
  if (view) return view;
  const auto sizes = sizes_of(array);
  if (std::ranges::all_of(sizes, [](int64_t size) { return size == 0; }))
    fail(std::string(name) + ": expected an array, but got an absent one (all zero)");
  if (std::ranges::all_of(sizes, [](int64_t size) { return size > 0; }))
    fail(std::string(name) + ": expected data, but got NULL with the sizes " + shape_of(array));
  return view;
}

AnyView<float> output_of(const sextant_array& array, const char* name) {
  const AnyView<float> view = operand_of(array, name);
  const struct {
    const char* dimension;
    int64_t size, stride;
  } all[] = {{"batch", array.batch, array.batch_stride},
             {"head", array.heads, array.head_stride},
             {"row", array.rows, array.row_stride},
             {"column", array.columns, array.column_stride}};
  const bool empty = std::ranges::any_of(sizes_of(array), [](int64_t size) { return size == 0; });
  for (const auto& x : all)
    if (!empty && x.size > 1 && x.stride == 0)
      fail(std::string(name) + "." + x.dimension +
           "_stride: expected a stride other than 0, as the size is " + std::to_string(x.size) +
           " and each element is written, but got 0");
  return view;
}

View<float> as_float(const AnyView<float>& view, const char* name) {
  if (view.dtype != DType::kFloat32)
    fail(std::string(name) + ".dtype: expected SEXTANT_FLOAT32, but got " +
         (view.dtype == DType::kBfloat16 ? "SEXTANT_BFLOAT16" : "SEXTANT_FLOAT16"));
  return view.as<float>();
}

double scale_of(double scale, int64_t columns) {
  if (scale == 0 && columns == 0)
    fail("q.columns: expected at least 1, as the scale is 0 (1 / sqrt(D)), but got 0");
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(columns));
}

View<const float> bias_of(const sextant_array& table, bool has_rows, const char* name) {
  const AnyView<float> view = view_of(table, name);
  if (view) return as_float(view, name);
  if (has_rows) fail(std::string(name) + ": expected data, since there are rows, but got NULL");
  if (std::ranges::any_of(sizes_of(table), [](int64_t size) { return size > 0; }))
    fail(std::string(name) + ": expected data, or all sizes 0 (no bias), but got NULL with the " +
         "sizes " + shape_of(table));
  return {};
}

void set_bias_and_sink(const sextant_bias& bias, const float* sink, Score<float>& score) {
  if (score.diagonals.count > 0 || bias.table.data || bias.rows)
    score.bias = bias_of(bias.table, bias.rows != nullptr, "bias.table");
  if (bias.rows) score.row_at.bias = {bias.rows, static_cast<size_t>(score.diagonals.count)};
  if (sink) score.sink = {sink, static_cast<size_t>(score.q.heads)};
}

void check_shapes(const Operands<float>& operands, const Plan& plan, const AnyView<float>& out) {
  check_qkv(operands, plan);
  check_out<float>(operands, out);
}

void attend_into(const Score<float>& score, const sextant_array* out, const sextant_array* lse,
                 const sextant_pool* pool) {
  const Shape shape = {.batch = score.q.batch, .heads = score.q.heads, .rows = score.q.rows};
  std::vector<float> unused;
  Attended<float> result = {.out = output_of(need(out, "out"), "out")};
  check_shapes(score, score, result.out);
  if (lse) {
    result.lse = as_float(output_of(*lse, "lse"), "lse");
  } else {
    unused.resize(static_cast<size_t>(shape.batch * shape.heads * shape.rows));
    result.lse = contiguous(unused, shape);
  }
  attend<float>(score, result, cpu_backend(), executor_of(pool));
}

}  // namespace sextant::c

sextant_array sextant_contiguous(const void* data, sextant_dtype dtype, int64_t batch,
                                 int64_t heads, int64_t rows, int64_t columns) {
  // Products of wrong sizes wrap around here, and the functions refuse the sizes.
  const auto product = [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  };
  const int64_t of_head = product(rows, columns);
  return {const_cast<void*>(data), batch,   heads,   rows, columns,
          product(heads, of_head), of_head, columns, 1,    dtype};
}
