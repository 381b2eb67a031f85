// The terms of models, written into the caller's memory.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "sextant/c/guard.h"
#include "sextant/c/handles.h"
#include "sextant/position/row_map.h"
#include "sextant/position/slopes.h"

using namespace sextant;
using sextant::c::guarded;
using sextant::c::need;

namespace {

// The caller's terms, after a check of their size.
sextant_terms& terms_of(sextant_terms* terms) {
  c::read(terms, "terms");
  return *terms;
}

Diagonals checked_diagonals(int64_t farthest, int64_t count) {
  if (count < 0 || count > kFarthestPosition)
    fail("count: expected 0 to 2^52, but got " + std::to_string(count));
  if (farthest < -kFarthestPosition || farthest > kFarthestPosition)
    fail("farthest: expected a distance within 2^52, but got " + std::to_string(farthest));
  return {.farthest = farthest, .count = count};
}

sextant_table bias_table(const float* bias, int64_t heads, int64_t count) {
  return {.table = sextant_contiguous(bias, SEXTANT_FLOAT32, 1, heads, count, 1), .rows = nullptr};
}

void copy(const std::vector<int32_t>& map, int32_t* rows) {
  if (!map.empty()) std::copy(map.begin(), map.end(), &need(rows, "rows"));
}

View<const float> position_table(const sextant_array& array, const char* name, int64_t rows) {
  const View<float> table = c::as_float(c::operand_of(array, name), name);
  if (table.batch != 1 || table.rows != rows)
    fail(std::string(name) + ": expected 1 x heads x " + std::to_string(rows) + " x D, but got " +
         std::to_string(table.batch) + " x heads x " + std::to_string(table.rows) + " x D");
  return table;
}

// Several sums at a time, so that it is vectorised.
double dot(const std::vector<double>& a, const float* b, int64_t stride) {
  constexpr size_t kSums = 8;
  double sums[kSums] = {};
  size_t c = 0;
  const auto add = [&](auto at) {
    for (; c + kSums <= a.size(); c += kSums)
      for (size_t n = 0; n < kSums; ++n) sums[n] += a[c + n] * double{at(c + n)};
    for (; c < a.size(); ++c) sums[0] += a[c] * double{at(c)};
  };
  if (stride == 1)
    add([b](size_t n) { return b[n]; });
  else
    add([b, stride](size_t n) { return b[static_cast<int64_t>(n) * stride]; });
  return std::accumulate(sums, sums + kSums, 0.0);
}

// Adds a row to all rows of a head.
void add_to_rows(const HostAnyView<float>& x, int64_t head, const float* row) {
  const bool plain = x.dtype == DType::kFloat32 && x.column_stride == 1;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t i = 0; i < x.rows; ++i) {
      float* const to = plain ? x.as<float>().at(b, head, i) : nullptr;
      for (int64_t c = 0; c < x.columns && plain; ++c) to[c] += row[c];
      for (int64_t c = 0; c < x.columns && !plain; ++c)
        x.set(b, head, i, c, x(b, head, i, c) + row[c]);
    }
}

}  // namespace

sextant_status sextant_alibi_slopes(int64_t heads, double max_bias, double* slopes) {
  return guarded([&] {
    const std::vector<double> computed = alibi_slopes(heads, max_bias);
    std::copy(computed.begin(), computed.end(), &need(slopes, "slopes"));
  });
}

sextant_status sextant_alibi_terms(int64_t heads, double max_bias, int64_t farthest, int64_t count,
                                   float* bias, sextant_terms* terms) {
  return guarded([&] {
    const Diagonals diagonals = checked_diagonals(farthest, count);
    const std::vector<double> slopes = alibi_slopes(heads, max_bias);
    sextant_terms& to = terms_of(terms);
    float* at = count > 0 ? &need(bias, "bias") : bias;
    for (const double slope : slopes)
      for (int64_t n = 0; n < count; ++n)
        *at++ = static_cast<float>(-slope * std::abs(static_cast<double>(diagonals.distance(n))));
    to.bias = bias_table(bias, heads, count);
  });
}

sextant_status sextant_t5_rows(int64_t buckets, int64_t max_distance, int bidirectional,
                               int64_t farthest, int64_t count, int32_t* rows) {
  return guarded([&] {
    const T5Buckets t5(
        {.buckets = buckets, .max_distance = max_distance, .bidirectional = bidirectional != 0});
    copy(row_map(checked_diagonals(farthest, count), t5), rows);
  });
}

sextant_status sextant_conformer_terms(const float* u, const float* v, const sextant_array* r,
                                       double scale, const sextant_array* q, float* bias,
                                       sextant_terms* terms) {
  return guarded([&] {
    need(u, "u"), need(v, "v"), need(bias, "bias");
    const HostAnyView<float> queries(c::output_of(need(q, "q"), "q"));
    const sextant_array& table = need(r, "r");
    const HostView<const float> rows(position_table(table, "r", table.rows));
    const int64_t heads = queries.heads, columns = queries.columns;
    if (rows.columns != columns || (rows.heads != 1 && rows.heads != heads))
      fail("r: expected 1 or " + std::to_string(heads) + " heads of " + std::to_string(columns) +
           " columns, as q, but got " + std::to_string(rows.heads) + " of " +
           std::to_string(rows.columns));
    sextant_terms& to = terms_of(terms);
    const double factor = c::scale_of(scale, columns);
    std::vector<double> difference(static_cast<size_t>(columns));
    for (int64_t h = 0; h < heads; ++h) {
      const float *of_u = u + h * columns, *of_v = v + h * columns;
      for (int64_t c = 0; c < columns; ++c)
        difference[static_cast<size_t>(c)] = double{of_v[c]} - double{of_u[c]};
      for (int64_t n = 0; n < rows.rows; ++n)
        bias[h * rows.rows + n] = static_cast<float>(
            factor * dot(difference, rows.at(0, rows.heads == 1 ? 0 : h, n), rows.column_stride));
      add_to_rows(queries, h, of_u);
    }
    to.on_query = {.table = table, .rows = nullptr};
    to.bias = bias_table(bias, heads, rows.rows);
  });
}

sextant_status sextant_deberta_terms(const sextant_array* position_keys,
                                     const sextant_array* position_queries, int64_t buckets,
                                     int64_t max_positions, int64_t farthest, int64_t count,
                                     int32_t* rows, sextant_terms* terms) {
  return guarded([&] {
    const Diagonals diagonals = checked_diagonals(farthest, count);
    sextant_terms& to = terms_of(terms);
    if (buckets < 0 || max_positions < 1 || max_positions > kFarthestPosition)
      fail("buckets, max_positions: expected at least 0 and 1, but got " + std::to_string(buckets) +
           " and " + std::to_string(max_positions));
    const int64_t span = buckets > 0 ? buckets : max_positions;
    if (position_keys) position_table(*position_keys, "position_keys", 2 * span);
    if (position_queries) position_table(*position_queries, "position_queries", 2 * span);
    using Options = DebertaBuckets::Options;
    copy(
        buckets > 0
            ? row_map(diagonals,
                      DebertaBuckets(Options{.buckets = buckets, .max_positions = max_positions}))
            : row_map(diagonals,
                      {.rows = 2 * span, .zero_distance = span, .order = RowOrder::kQueryMinusKey}),
        rows);
    if (position_keys) to.on_query = {.table = *position_keys, .rows = rows};
    if (position_queries) to.on_key = {.table = *position_queries, .rows = rows};
  });
}
