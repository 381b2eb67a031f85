#include <cmath>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/c/handles.h"

namespace sextant::c {

DType dtype_of(sextant_dtype dtype, const char* name) {
  switch (dtype) {
    case SEXTANT_FLOAT32:
      return DType::kFloat32;
    case SEXTANT_BFLOAT16:
      return DType::kBfloat16;
    case SEXTANT_FLOAT16:
      return DType::kFloat16;
  }
  fail(std::string(name) + ".dtype: expected SEXTANT_FLOAT32, SEXTANT_BFLOAT16 or " +
       "SEXTANT_FLOAT16, but got " + std::to_string(static_cast<int>(dtype)));
}

AnyView<float> view_of(const sextant_array& array, const char* name) {
  for (const int64_t size : {array.batch, array.heads, array.rows, array.columns})
    if (size < 0)
      fail(std::string(name) + ": expected sizes of at least 0, but got " + std::to_string(size));
  AnyView<float> view;
  view.data = array.data;
  view.batch = array.batch, view.heads = array.heads;
  view.rows = array.rows, view.columns = array.columns;
  view.batch_stride = array.batch_stride, view.head_stride = array.head_stride;
  view.row_stride = array.row_stride, view.column_stride = array.column_stride;
  view.dtype = dtype_of(array.dtype, name);
  return view;
}

View<float> float_view_of(const sextant_array& array, const char* name) {
  const AnyView<float> view = view_of(array, name);
  if (view.dtype != DType::kFloat32)
    fail(std::string(name) + ".dtype: expected SEXTANT_FLOAT32, but got " +
         (view.dtype == DType::kBfloat16 ? "SEXTANT_BFLOAT16" : "SEXTANT_FLOAT16"));
  return view.as<float>();
}

double scale_of(double scale, int64_t columns) {
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(columns));
}

void set_bias_and_sink(const sextant_bias& bias, const float* sink, Score<float>& score) {
  if (bias.table.data) {
    const View<float> table = float_view_of(bias.table, "bias.table");
    score.bias = {table.data,        table.batch,      table.heads,
                  table.rows,        table.columns,    table.batch_stride,
                  table.head_stride, table.row_stride, table.column_stride};
    if (bias.rows) score.row_at.bias = {bias.rows, static_cast<size_t>(score.diagonals.count)};
  } else if (bias.rows) {
    fail("bias.table: expected data, since there are rows, but got NULL");
  }
  if (sink) score.sink = {sink, static_cast<size_t>(score.q.heads)};
}

void attend_into(const Score<float>& score, const sextant_array* out, const sextant_array* lse,
                 const sextant_pool* pool) {
  const Shape shape = {.batch = score.q.batch, .heads = score.q.heads, .rows = score.q.rows};
  std::vector<float> unused;
  Attended<float> result = {.out = view_of(need(out, "out"), "out")};
  if (lse) {
    result.lse = float_view_of(*lse, "lse");
  } else {
    unused.resize(static_cast<size_t>(shape.batch * shape.heads * shape.rows));
    result.lse = contiguous(unused, shape);
  }
  attend<float>(score, result, cpu_backend(), executor_of(pool));
}

}  // namespace sextant::c

sextant_array sextant_contiguous(const void* data, sextant_dtype dtype, int64_t batch,
                                 int64_t heads, int64_t rows, int64_t columns) {
  return {const_cast<void*>(data), batch,          heads,   rows, columns,
          heads * rows * columns,  rows * columns, columns, 1,    dtype};
}
