#include "sextant/attention/check_score.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "sextant/attention/check_field.h"
#include "sextant/attention/check_plan.h"

namespace sextant {
namespace {

struct Sizes {
  int64_t batch, heads, rows, columns;
};

void check_sizes(const Field& name, const Sizes& x, bool has_data) {
  const int64_t sizes[] = {x.batch, x.heads, x.rows, x.columns};
  for (const int64_t size : sizes)
    if (size < 0) refuse_field(name, "sizes of at least 0", text(size));
  const bool empty = std::ranges::any_of(sizes, [](int64_t size) { return size == 0; });
  if (!empty && !has_data) refuse_field(name, "data", "a null pointer");
}

template <class AView>
Sizes sizes_of(const AView& x) {
  return {x.batch, x.heads, x.rows, x.columns};
}

template <class AView>
void check_sizes(const Field& name, const AView& view) {
  check_sizes(name, sizes_of(view), view.data != nullptr);
}

// The types that elements of AnyView<T> may have.
template <class T>
void check_data(std::string_view name, const AnyView<T>& view) {
  constexpr DType own = kDTypeOf<typename AnyView<T>::Number>;
  if (view.dtype != own && view.dtype != DType::kBfloat16 && view.dtype != DType::kFloat16)
    refuse_field({name, ".dtype"}, "that of the call, bfloat16 or float16", "another");
  check_sizes({name}, view);
}

template <class T>
void check_data(std::string_view name, const View<T>& view) {
  check_sizes({name}, view);
}

void expect_sizes(std::string_view name, const Sizes& got, const Sizes& expected) {
  expect_equal({name, ".batch"}, got.batch, expected.batch, "as q");
  expect_equal({name, ".heads"}, got.heads, expected.heads, "to fit the operands");
  expect_equal({name, ".rows"}, got.rows, expected.rows, "to fit the operands");
  expect_equal({name, ".columns"}, got.columns, expected.columns, "to fit the operands");
}

template <class AView>
void check_shape(std::string_view name, const AView& view, int64_t batch, int64_t heads,
                 int64_t rows, int64_t columns) {
  check_data(name, view);
  expect_sizes(name, sizes_of(view), {batch, heads, rows, columns});
}

template <class T>
bool any_table(const Operands<T>& o) {
  return o.weight || o.bias || o.on_query || o.on_key || o.on_value || o.query_bias;
}

template <class T>
void check_table(std::string_view name, const View<const T>& rows, std::span<const int32_t> row_at,
                 const PreparedPlan& plan, int64_t fewest_columns, int64_t most_columns) {
  if (!rows) return;
  const int64_t heads = plan.shape().heads, diagonals = plan.plan().diagonals.count;
  check_data(name, rows);
  expect_equal({name, ".batch"}, rows.batch, 1, "one table");
  if (rows.heads != 1 && rows.heads != heads)
    refuse_field({name, ".heads"}, "1 or " + text(heads), text(rows.heads));
  expect_between({name, ".columns"}, rows.columns, fewest_columns, most_columns);
  if (row_at.empty()) {
    if (rows.rows < diagonals)
      refuse_field({name, ".rows"},
                   "at least " + text(diagonals) + " (one row for each diagonal, there is no map)",
                   text(rows.rows));
    return;
  }
  expect_equal({"row_at.", name}, static_cast<int64_t>(row_at.size()), diagonals,
               "one for each diagonal");
  for (const int32_t row : row_at)
    if (row < 0 || row >= rows.rows)
      refuse_field({"row_at.", name}, "rows 0 to " + text(rows.rows - 1), text(row));
}

template <class T>
void check_tables(const Operands<T>& o, const PreparedPlan& plan) {
  const RowMaps& row_at = plan.plan().row_at;
  const int64_t columns = plan.shape().columns, value_columns = plan.shape().value_columns;
  check_table("weight", o.weight, row_at.weight, plan, 1, 1);
  check_table("bias", o.bias, row_at.bias, plan, 1, 1);
  check_table("on_query", o.on_query, row_at.on_query, plan, 0, columns);
  check_table("on_key", o.on_key, row_at.on_key, plan, 0, columns);
  check_table("on_value", o.on_value, row_at.on_value, plan, value_columns, value_columns);
}

template <class T>
void check_query_bias(const Operands<T>& o, const Diagonals& diagonals) {
  const auto& x = o.query_bias;
  if (!x) return;
  check_shape("query_bias", x, o.q.batch, o.q.heads, o.q.rows, x.columns);
  if (x.columns < diagonals.count)
    refuse_field("query_bias.columns",
                 "at least " + text(diagonals.count) + " (one for each diagonal)", text(x.columns));
}

template <class T>
void check_table_grad(std::string_view name, const AnyView<T>& grad, const View<const T>& rows) {
  if (!grad) return;
  if (!rows) refuse_field(name, "no gradient (the operand is absent)", "a view");
  check_shape(name, grad, rows.batch, rows.heads, rows.rows, rows.columns);
}

template <class T>
void check_int8(std::string_view name, const Int8Pages<T>& pages, int64_t count,
                const AnyView<const T>& like) {
  const View<const int8_t>& numbers = pages.numbers;
  const View<const T>& scale = pages.scale;
  check_sizes({name, ".numbers"}, numbers);
  expect_equal({name, ".numbers.batch"}, numbers.batch, count, "as k_int8");
  expect_equal({name, ".numbers.heads"}, numbers.heads, like.heads, "as k");
  expect_equal({name, ".numbers.rows"}, numbers.rows, like.rows, "as k");
  expect_equal({name, ".numbers.columns"}, numbers.columns, like.columns, "as those of float");
  expect_equal({name, ".numbers.column_stride"}, numbers.column_stride, 1, "adjacent columns");
  check_sizes({name, ".scale"}, scale);
  expect_equal({name, ".scale.batch"}, scale.batch, count, "as the numbers");
  expect_equal({name, ".scale.heads"}, scale.heads, like.heads, "as the numbers");
  if (scale.rows != 1) expect_equal({name, ".scale.rows"}, scale.rows, like.rows, "or 1");
  if (scale.columns != 1)
    expect_equal({name, ".scale.columns"}, scale.columns, like.columns, "or 1");
  if (scale.columns != 1)
    expect_equal({name, ".scale.column_stride"}, scale.column_stride, 1, "adjacent columns");
}

template <class T>
void check_int8_pages(const Operands<T>& o, const Plan& plan) {
  if (!o.k_int8 && !o.v_int8) return;
  if (!plan.pages) refuse_field("k_int8", "none, as there are no pages", "a view");
  if (!o.k_int8 || !o.v_int8)
    refuse_field("k_int8, v_int8", "both or neither", o.k_int8 ? "the first" : "the second");
  const int64_t count = o.k_int8.numbers.batch;
  check_int8("k_int8", o.k_int8, count, o.k);
  check_int8("v_int8", o.v_int8, count, o.v);
}

void expect_same(const char* field, int64_t got, int64_t planned) {
  if (got != planned) refuse_field(field, text(planned) + " (as planned)", text(got));
}

void check_planned(const PlanShape& got, const PlanShape& planned) {
  if (got == planned) return;
  expect_same("q.batch", got.batch, planned.batch);
  expect_same("q.heads", got.heads, planned.heads);
  expect_same("k.heads", got.key_heads, planned.key_heads);
  expect_same("q.rows", got.queries, planned.queries);
  expect_same("k.rows", got.keys, planned.keys);
  expect_same("k.rows", got.page_rows, planned.page_rows);
  expect_same("q.columns", got.columns, planned.columns);
  expect_same("v.columns", got.value_columns, planned.value_columns);
  if (got.key_table != planned.key_table)
    refuse_field("on_key", planned.key_table ? "a view (as planned)" : "none (as planned)",
                 "the other");
}

}  // namespace

template <class T>
void check_qkv(const Operands<T>& o, const Plan& plan) {
  check_data("q", o.q);
  check_data("k", o.k);
  check_data("v", o.v);
  if (!plan.pages) expect_equal({"k.batch"}, o.k.batch, o.q.batch, "as q");
  expect_equal({"v.batch"}, o.v.batch, o.k.batch, "as k");
  expect_equal({"k.columns"}, o.k.columns, o.q.columns, "as q");
  expect_equal({"v.heads"}, o.v.heads, o.k.heads, "as k");
  expect_equal({"v.rows"}, o.v.rows, o.k.rows, "as k");
  if (o.k.heads == 0 ? o.q.heads != 0 : o.q.heads % o.k.heads != 0)
    refuse_field("q.heads", "a multiple of the " + text(o.k.heads) + " key heads", text(o.q.heads));
  if (!std::isfinite(o.scale)) refuse_field("scale", "a finite number", std::to_string(o.scale));
  if (!std::isfinite(o.softcap) || o.softcap < 0)
    refuse_field("softcap", "a finite number above 0, or 0 for none", std::to_string(o.softcap));
  const double p = o.dropout.probability;
  if (!(p >= 0 && p < 1))
    refuse_field("dropout.probability", "at least 0 and below 1", std::to_string(p));
}

template <class T>
void check_operands(const Operands<T>& o, const PreparedPlan& prepared) {
  const Plan& plan = prepared.plan();
  const PlanShape& shape = prepared.shape();
  check_qkv(o, plan);
  check_planned(shape_of(o, plan), shape);
  check_int8_pages(o, plan);
  const PageRange pages = {o.k_int8 ? -o.k_int8.numbers.batch : 0, o.k.batch - 1};
  if (prepared.page_range().first < pages.first || prepared.page_range().last > pages.last)
    check_pages_in(plan, shape, pages);
  if (o.q_imag) check_shape("q_imag", o.q_imag, o.q.batch, o.q.heads, o.q.rows, o.q.columns);
  check_tables(o, prepared);
  check_query_bias(o, plan.diagonals);
  if (o.key_bias) check_shape("key_bias", o.key_bias, o.q.batch, o.q.heads, shape.keys, 1);
  if (any_table(o) && !prepared.covers_distances()) check_distances(plan, shape);
  if (!o.sink.empty())
    expect_equal({"sink"}, static_cast<int64_t>(o.sink.size()), o.q.heads,
                 "one for each query head");
  if (o.mask) check_shape("mask", o.mask, o.q.batch, o.q.heads, o.q.rows, shape.keys);
}

template <class T, class U>
void check_out(const Operands<T>& o, const AnyView<U>& out) {
  check_shape("out", out, o.q.batch, o.q.heads, o.q.rows, o.v.columns);
}

template <class T, class U>
void check_attended(const Operands<T>& o, const Attended<U>& attended) {
  check_out(o, attended.out);
  check_shape("lse", attended.lse, o.q.batch, o.q.heads, o.q.rows, 1);
}

template <class T>
void check_grad(const Operands<T>& s, const Plan& plan, AnyView<const T> d_out,
                const ScoreGrad<T>& grad) {
  if (plan.pages) refuse_field("pages", "none where gradients are asked for", "a table");
  check_shape("d_out", d_out, s.q.batch, s.q.heads, s.q.rows, s.v.columns);
  if (grad.q) check_shape("grad.q", grad.q, s.q.batch, s.q.heads, s.q.rows, s.q.columns);
  if (grad.k) check_shape("grad.k", grad.k, s.k.batch, s.k.heads, s.k.rows, s.k.columns);
  if (grad.v) check_shape("grad.v", grad.v, s.v.batch, s.v.heads, s.v.rows, s.v.columns);
  if (grad.q_imag) {
    if (!s.q_imag) refuse_field("grad.q_imag", "no gradient (the operand is absent)", "a view");
    check_shape("grad.q_imag", grad.q_imag, s.q.batch, s.q.heads, s.q.rows, s.q.columns);
  }
  check_table_grad("grad.weight", grad.weight, s.weight);
  check_table_grad("grad.bias", grad.bias, s.bias);
  check_table_grad("grad.on_query", grad.on_query, s.on_query);
  check_table_grad("grad.on_key", grad.on_key, s.on_key);
  check_table_grad("grad.on_value", grad.on_value, s.on_value);
  if (grad.query_bias) {
    if (!s.query_bias)
      refuse_field("grad.query_bias", "no gradient (the operand is absent)", "a view");
    check_shape("grad.query_bias", grad.query_bias, s.q.batch, s.q.heads, s.q.rows,
                s.query_bias.columns);
  }
  if (grad.key_bias) {
    if (!s.key_bias) refuse_field("grad.key_bias", "no gradient (the operand is absent)", "a view");
    check_shape("grad.key_bias", grad.key_bias, s.q.batch, s.q.heads, s.k.rows, 1);
  }
  if (!grad.sink.empty())
    expect_equal({"grad.sink"}, static_cast<int64_t>(grad.sink.size()),
                 static_cast<int64_t>(s.sink.size()), "as sink");
}

template void check_qkv(const Operands<float>&, const Plan&);
template void check_qkv(const Operands<double>&, const Plan&);
template void check_operands(const Operands<float>&, const PreparedPlan&);
template void check_operands(const Operands<double>&, const PreparedPlan&);
template void check_out(const Operands<float>&, const AnyView<float>&);
template void check_attended(const Operands<float>&, const Attended<float>&);
template void check_attended(const Operands<float>&, const Attended<const float>&);
template void check_attended(const Operands<double>&, const Attended<double>&);
template void check_attended(const Operands<double>&, const Attended<const double>&);
template void check_grad(const Operands<float>&, const Plan&, AnyView<const float>,
                         const ScoreGrad<float>&);
template void check_grad(const Operands<double>&, const Plan&, AnyView<const double>,
                         const ScoreGrad<double>&);

}  // namespace sextant
