// Checks of each operand by its tags (operand_list.h), and of what q, k and v share.
#include "sextant/attention/check_score.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "sextant/attention/check_field.h"
#include "sextant/attention/check_plan.h"
#include "sextant/attention/operand_list.h"

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

// Whether any operand has values by distance.
template <class T>
bool any_by_distance(const Operands<T>& o) {
  bool any = false;
  each_operand([&](auto operand) {
    if constexpr (operand.has(Axis::kRows) || operand.has(Axis::kDiagonals))
      any = any || operand.of(o);
  });
  return any;
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

// Checks a table of the axes, whose `columns` are 1 or those of the query that meets it.
template <class T>
void check_axis_table(std::string_view name, const View<const T>& rows,
                      std::span<const int32_t> PositionAxis::*map, const PreparedPlan& plan,
                      int64_t fewest_columns, int64_t most_columns) {
  if (!rows) return;
  const int64_t heads = plan.shape().heads;
  check_data(name, rows);
  expect_equal({name, ".batch"}, rows.batch, 1, "one table");
  if (rows.heads != 1 && rows.heads != heads)
    refuse_field({name, ".heads"}, "1 or " + text(heads), text(rows.heads));
  expect_between({name, ".columns"}, rows.columns, fewest_columns, most_columns);
  bool met = false;
  for (const PositionAxis& axis : plan.plan().axes)
    for (const int32_t row : axis.*map) {
      met = true;
      if (row < -1 || row >= rows.rows)
        refuse_field({"axes: rows of ", name}, "-1 to " + text(rows.rows - 1), text(row));
    }
  if (!met && plan.shape().queries > 0 && plan.shape().keys > 0)
    refuse_field(name, "an axis with rows of it", "none");
}

// The size of an axis, or -1 if the operand chooses it.
int64_t size_of(Axis axis, const PlanShape& s) {
  if (axis == Axis::kNone) return 1;
  const AxisSizes<int64_t> sizes = {s.batch, s.heads,   s.key_heads,    s.queries,
                                    s.keys,  s.columns, s.value_columns};
  return axis < Axis::kRows ? sizes[static_cast<size_t>(axis)] : -1;
}

// Checks an optional operand: a table, a value for each head, or a view with all axes.
template <class Entry, class T>
void check_operand(Entry operand, const Operands<T>& o, const PreparedPlan& prepared) {
  const auto& x = operand.of(o);
  const PlanShape& shape = prepared.shape();
  const int64_t size = size_of(operand.axis(2), shape);
  if constexpr (operand.has(Axis::kRows)) {
    // A alone may meet other queries.
    const bool by_table_query = &x == &o.on_query && o.table_query;
    check_table(operand.name, x, operand.of(prepared.plan().row_at), prepared,
                std::max<int64_t>(size, 0),
                by_table_query ? o.table_query.columns
                : size < 0     ? shape.columns
                               : size);
  } else if constexpr (operand.has(Axis::kAxisRows)) {
    const bool vectors = operand.has(Axis::kFirstColumns);
    check_axis_table(operand.name, x, vectors ? &PositionAxis::on_query : &PositionAxis::bias,
                     prepared, vectors ? 0 : 1,
                     !vectors        ? 1
                     : o.table_query ? o.table_query.columns
                                     : shape.columns);
  } else if constexpr (!operand.has(Axis::kBatch)) {
    if (!x.empty())
      expect_equal({operand.name}, static_cast<int64_t>(x.size()), shape.heads,
                   "one for each query head");
  } else if (x) {
    const int64_t columns = size_of(operand.axis(3), shape);
    check_shape(operand.name, x, shape.batch, shape.heads, size, columns < 0 ? x.columns : columns);
    const int64_t diagonals = prepared.plan().diagonals.count;
    if (operand.has(Axis::kDiagonals) && x.columns < diagonals)
      refuse_field(Field{operand.name, ".columns"},
                   "at least " + text(diagonals) + " (one for each diagonal)", text(x.columns));
  }
}

template <class T, class AView>
void check_grad_of(std::string_view name, const AnyView<T>& grad, const AView& operand,
                   Presence presence) {
  if (!grad) return;
  if (!operand && presence == Presence::kOptional)
    refuse_field(name, "no gradient (the operand is absent)", "a view");
  check_data(name, grad);
  expect_sizes(name, sizes_of(grad), sizes_of(operand));
}

template <class T>
void check_grad_of(std::string_view name, std::span<T> grad, std::span<const T> operand, Presence) {
  if (!grad.empty())
    expect_equal({name}, static_cast<int64_t>(grad.size()), static_cast<int64_t>(operand.size()),
                 "as its operand");
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
  each_operand([&](auto operand) {
    if constexpr (operand.presence == Presence::kOptional) check_operand(operand, o, prepared);
  });
  if (o.table_query && !o.on_query && !o.axis_on_query)
    refuse_field("table_query", "a table that it meets: on_query or axis_on_query", "none");
  if (o.query_sink && !o.sink.empty()) refuse_field("query_sink", "none beside a sink", "a view");
  if (any_by_distance(o) && !prepared.covers_distances()) check_distances(plan, shape);
}

template <class T>
void check_out(const Operands<T>& o, const AnyView<const T>& out) {
  check_shape("out", out, o.q.batch, o.q.heads, o.q.rows, o.v.columns);
}

template <class T>
void check_attended(const Operands<T>& o, const Attended<const T>& attended) {
  check_out(o, attended.out);
  check_shape("lse", attended.lse, o.q.batch, o.q.heads, o.q.rows, 1);
}

template <class T>
void check_grad(const Operands<T>& s, const Plan& plan, AnyView<const T> d_out,
                const ScoreGrad<T>& grad) {
  if (plan.pages) refuse_field("pages", "none where gradients are asked for", "a table");
  check_shape("d_out", d_out, s.q.batch, s.q.heads, s.q.rows, s.v.columns);
  each_differentiable([&](auto operand) {
    check_grad_of("grad." + std::string(operand.name), operand.of(grad), operand.of(s),
                  operand.presence);
  });
}

template void check_qkv(const Operands<float>&, const Plan&);
template void check_qkv(const Operands<double>&, const Plan&);
template void check_operands(const Operands<float>&, const PreparedPlan&);
template void check_operands(const Operands<double>&, const PreparedPlan&);
template void check_out(const Operands<float>&, const AnyView<const float>&);
template void check_attended(const Operands<float>&, const Attended<const float>&);
template void check_attended(const Operands<double>&, const Attended<const double>&);
template void check_grad(const Operands<float>&, const Plan&, AnyView<const float>,
                         const ScoreGrad<float>&);
template void check_grad(const Operands<double>&, const Plan&, AnyView<const double>,
                         const ScoreGrad<double>&);

}  // namespace sextant
