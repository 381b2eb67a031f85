// Arrays of C as views. Each check names the member of the struct that is wrong.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "sextant/attention/check_score.h"
#include "sextant/c/handles.h"

namespace sextant::c {
namespace {

struct Dimension {
  const char* name;
  int64_t size, stride;
};

std::array<Dimension, 4> dimensions_of(const sextant_array& x) {
  return {{{"batch", x.batch, x.batch_stride},
           {"head", x.heads, x.head_stride},
           {"row", x.rows, x.row_stride},
           {"column", x.columns, x.column_stride}}};
}

// "1 x 2 x 3 x 4"
std::string shape_of(const sextant_array& array) {
  std::string text;
  for (const Dimension& x : dimensions_of(array))
    text += (text.empty() ? "" : " x ") + std::to_string(x.size);
  return text;
}

bool is_empty(const sextant_array& array) {
  return std::ranges::any_of(dimensions_of(array), [](const auto& x) { return x.size == 0; });
}

int64_t element_bytes(sextant_dtype dtype) {
  return dtype == SEXTANT_FLOAT64 ? 8 : dtype == SEXTANT_FLOAT32 ? 4 : 2;
}

[[noreturn]] void refuse_stride(const Name& name, const Dimension& x, const std::string& expected) {
  fail(name.text() + "." + x.name + "_stride: expected " + expected + ", as the size is " +
       std::to_string(x.size) + ", but got " + std::to_string(x.stride));
}

void check_strides(const sextant_array& array, const Name& name) {
  constexpr int64_t kFarthest = int64_t{1} << 59;  // elements of 8 bytes: 2^62 bytes
  int64_t reach = 0;
  bool varies = false, several = false;
  for (const Dimension& x : dimensions_of(array)) {
    if (x.size < 2) continue;
    several = true;
    varies = varies || x.stride != 0;
    const int64_t least = -(kFarthest - reach) / (x.size - 1);
    if (x.stride < least || x.stride > -least) refuse_stride(name, x, "elements within 2^62 bytes");
    reach += std::abs(x.stride) * (x.size - 1);
  }
  if (several && !varies && !is_empty(array))
    fail(name.text() +
         ": expected strides (sextant_contiguous() fills them in), but all are 0 with the " +
         "sizes " + shape_of(array));
}

void check_sizes(const sextant_array& array, const Name& name) {
  int64_t bound = 1;
  for (const Dimension& x : dimensions_of(array)) {
    if (x.size < 0)
      fail(name.text() + ": expected sizes of at least 0, but got " + std::to_string(x.size));
    if (x.size > kLargestView / bound)
      fail(name.text() + ": expected at most 2^60 elements, but got " + shape_of(array));
    bound *= std::max<int64_t>(x.size, 1);
  }
  check_strides(array, name);
}

template <class AView>
AView with_sizes(const sextant_array& array) {
  AView view;
  view.batch = array.batch, view.heads = array.heads;
  view.rows = array.rows, view.columns = array.columns;
  view.batch_stride = array.batch_stride, view.head_stride = array.head_stride;
  view.row_stride = array.row_stride, view.column_stride = array.column_stride;
  return view;
}

void check_optional(const sextant_array& array, const Name& name, sextant_dtype dtype,
                    const char* type) {
  check_sizes(array, name);
  if (array.data && array.dtype != dtype)
    fail(name.text() + ".dtype: expected " + type + ", but got another");
  if (!array.data && !is_absent(array))
    fail(name.text() + ": expected data, or all sizes 0 (absent), but got NULL with the sizes " +
         shape_of(array));
}

// The bytes from the lowest element of an array on, by dimensions: those with a stride below
// `stride` bytes lie within `inner`, and others are multiples of it or make `fits` false.
struct Extent {
  intptr_t low = 0;
  int64_t inner = 0;
  bool fits = true;

  Extent(const sextant_array& x, int64_t stride) : inner(element_bytes(x.dtype)) {
    low = reinterpret_cast<intptr_t>(x.data);
    for (const Dimension& d : dimensions_of(x)) {
      const int64_t step = std::abs(d.stride) * element_bytes(x.dtype);
      if (d.stride < 0) low -= step * (d.size - 1);
      if (d.size < 2 || step == 0) continue;
      if (step < stride)
        inner += step * (d.size - 1);
      else
        fits = fits && step % stride == 0;
    }
    fits = fits && inner <= stride;
  }
};

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
    case SEXTANT_FLOAT64:
      break;
  }
  fail(std::string(name) + ".dtype: expected SEXTANT_FLOAT32, SEXTANT_BFLOAT16 or " +
       "SEXTANT_FLOAT16, or SEXTANT_INT8 for a cache, but got " +
       std::to_string(static_cast<int>(dtype)));
}

bool is_absent(const sextant_array& array) {
  return !array.data &&
         std::ranges::all_of(dimensions_of(array), [](const auto& x) { return x.size == 0; });
}

AnyView<float> view_of(const sextant_array& array, const char* name) {
  check_sizes(array, name);
  auto view = with_sizes<AnyView<float>>(array);
  view.data = array.data;
  view.dtype = dtype_of(array.dtype, name);
  return view;
}

AnyView<float> operand_of(const sextant_array& array, const char* name) {
  const AnyView<float> view = view_of(array, name);
  if (is_absent(array))
    fail(std::string(name) + ": expected an array, but got an absent one (all zero)");
  if (is_empty(array)) return view;
  if (!view)
    fail(std::string(name) + ": expected data, but got NULL with the sizes " + shape_of(array));
  const Dimension columns = dimensions_of(array)[3];
  if (columns.size > 1 && columns.stride == 0)
    refuse_stride(name, columns, "a stride other than 0");
  return view;
}

AnyView<float> output_of(const sextant_array& array, const char* name) {
  const AnyView<float> view = operand_of(array, name);
  if (is_empty(array)) return view;
  std::array<Dimension, 4> all = dimensions_of(array);
  std::ranges::sort(all, {}, [](const Dimension& x) { return std::abs(x.stride); });
  int64_t reach = 0;  // of the dimensions with smaller strides
  for (const Dimension& x : all) {
    if (x.size < 2) continue;
    if (x.stride == 0) refuse_stride(name, x, "a stride other than 0, for each element is written");
    if (std::abs(x.stride) <= reach)
      refuse_stride(name, x,
                    "at least " + std::to_string(reach + 1) + ", for elements must not overlap");
    reach += std::abs(x.stride) * (x.size - 1);
  }
  return view;
}

View<float> as_float(const AnyView<float>& view, const char* name) {
  if (view.dtype != DType::kFloat32)
    fail(std::string(name) + ".dtype: expected SEXTANT_FLOAT32, but got " +
         (view.dtype == DType::kBfloat16 ? "SEXTANT_BFLOAT16" : "SEXTANT_FLOAT16"));
  return view.as<float>();
}

View<const float> optional_of(const sextant_array& array, const Name& name) {
  check_optional(array, name, SEXTANT_FLOAT32, "SEXTANT_FLOAT32");
  auto view = with_sizes<View<const float>>(array);
  view.data = static_cast<const float*>(array.data);
  return view;
}

View<const double> optional_double_of(const sextant_array& array, const Name& name) {
  check_optional(array, name, SEXTANT_FLOAT64, "SEXTANT_FLOAT64");
  auto view = with_sizes<View<const double>>(array);
  view.data = static_cast<const double*>(array.data);
  return view;
}

// Rows of one array may lie between those of the other, as q, k and v in one array: then both
// repeat by the same stride, and what lies within it is disjoint.
bool share_memory(const sextant_array& a, const sextant_array& b) {
  if (!a.data || !b.data || is_empty(a) || is_empty(b)) return false;
  constexpr int64_t kAll = INT64_MAX;
  const auto disjoint = [](int64_t apart, const Extent& x, const Extent& y, int64_t stride) {
    return apart >= x.inner && apart <= stride - y.inner;
  };
  const Extent x(a, kAll), y(b, kAll);
  if (x.low + x.inner <= y.low || y.low + y.inner <= x.low) return false;
  for (const Dimension& d : dimensions_of(a)) {
    const int64_t stride = std::abs(d.stride) * element_bytes(a.dtype);
    if (stride == 0) continue;
    const Extent of_a(a, stride), of_b(b, stride);
    const int64_t apart = ((y.low - x.low) % stride + stride) % stride;
    if (of_a.fits && of_b.fits && disjoint(apart, of_a, of_b, stride)) return false;
  }
  return true;
}

namespace {

void check_overlap(const sextant_array& q, const sextant_array& k, const sextant_array& v,
                   const sextant_array& out, const sextant_array* lse) {
  const auto expect_apart = [](const sextant_array& a, const char* name, const sextant_array& b,
                               const char* other) {
    if (share_memory(a, b))
      fail(std::string(name) + ": expected memory of its own, but it shares some with " + other);
  };
  const auto same = [](const sextant_array& a, const sextant_array& b) {
    bool alike = a.data == b.data && a.dtype == b.dtype;
    const auto x = dimensions_of(a), y = dimensions_of(b);
    for (size_t n = 0; n < x.size(); ++n)
      alike = alike && x[n].size == y[n].size && (x[n].size == 1 || x[n].stride == y[n].stride);
    return alike;
  };
  if (!same(out, q)) expect_apart(out, "out", q, "q, and is not q itself");
  expect_apart(out, "out", k, "k");
  expect_apart(out, "out", v, "v");
  if (!lse) return;
  expect_apart(*lse, "lse", q, "q");
  expect_apart(*lse, "lse", k, "k");
  expect_apart(*lse, "lse", v, "v");
  expect_apart(*lse, "lse", out, "out");
}

}  // namespace

Attended<float> results_of(const sextant_array& q, const sextant_array& k, const sextant_array& v,
                           const sextant_array* out, const sextant_array* lse,
                           std::vector<float>& unused) {
  Attended<float> results = {.out = output_of(need(out, "out"), "out")};
  const Shape shape = {.batch = q.batch, .heads = q.heads, .rows = q.rows};
  if (lse) {
    results.lse = as_float(output_of(*lse, "lse"), "lse");
  } else {
    unused.resize(static_cast<size_t>(shape.batch * shape.heads * shape.rows));
    results.lse = contiguous(unused, shape);
  }
  check_overlap(q, k, v, *out, lse);
  return results;
}

void TableMaps::set(const sextant_terms& terms, int64_t diagonals) {
  each_table(terms, *this, [&](const char*, const sextant_table& table, auto& map) {
    map.clear();
    if (table.rows) map.assign(table.rows, table.rows + diagonals);
  });
}

double scale_of(double scale, int64_t columns) {
  if (scale == 0 && columns == 0)
    fail("q.columns: expected at least 1, as the scale is 0 (1 / sqrt(D)), but got 0");
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(columns));
}

void refuse_axes(const sextant_terms& terms, const char* call) {
  if (terms.axis_count != 0)
    fail(std::string(call) + ": terms.axis_count: expected 0, as rows of a cache have no further " +
         "axes, but got " + std::to_string(terms.axis_count));
}

void set_terms(const sextant_terms& terms, int64_t keys, Operands<float>& o) {
  each_table(terms, o, [](const char* name, const sextant_table& table, auto& to) {
    const Name full("terms.", name, ".table");
    to = optional_of(table.table, full);
    if (!to && table.rows)
      fail(full.text() + ": expected data, since there are rows, but got NULL");
  });
  o.query_bias = optional_of(terms.query_bias, "terms.query_bias");
  o.key_bias = optional_double_of(terms.key_bias, "terms.key_bias");
  o.axis_bias = optional_of(terms.axis_bias, "terms.axis_bias");
  o.axis_on_query = optional_of(terms.axis_on_query, "terms.axis_on_query");
  o.table_query = optional_of(terms.table_query, "terms.table_query");
  o.query_sink = optional_of(terms.query_sink, "terms.query_sink");
  if (terms.mask) {
    const int64_t* s = terms.mask_strides;
    o.mask = {terms.mask, o.q.batch, o.q.heads, o.q.rows, keys, s[0], s[1], s[2], s[3]};
  }
  o.softcap = terms.softcap;
  if (terms.sink) o.sink = {terms.sink, static_cast<size_t>(o.q.heads)};
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
