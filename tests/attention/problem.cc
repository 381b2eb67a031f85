#include "tests/attention/problem.h"

#include <utility>

namespace sextant::oracle {
namespace {

template <class T>
void bind_table(const OwnedTable<T>& owned, View<const T>& rows, std::span<const int32_t>& row_at) {
  if (owned.rows.data.empty()) return;
  rows = owned.rows.view();
  row_at = owned.row_at;
}

SideRotation turn(const OwnedSweep& sweep, const std::vector<int64_t>& rotary_positions,
                  const std::vector<Turns>& offset, int64_t rows) {
  if (sweep.rotation.pairs.empty()) return {};
  return {.rotation = &sweep.rotation,
          .rotary_positions = rotary_positions.data(),
          .axis_stride = rows,
          .offset = offset};
}

}  // namespace

template <class T>
Score<T> Problem<T>::score() const {
  Score<T> s = {{.q = q.view(), .k = k.view(), .v = v.view(), .scale = scale}, {.frames = frames}};
  for (const OwnedSweep& sweep : sweeps) {
    const bool shared = static_cast<int64_t>(sweep.key_ranges.size()) == q.rows;
    s.sweeps.push_back(
        {.query = turn(sweep, sweep.query_rotary_positions, sweep.query_offset, q.rows),
         .key = turn(sweep, sweep.key_rotary_positions, sweep.key_offset, k.rows),
         .key_ranges = sweep.key_ranges.data(),
         .batch_stride = shared ? 0 : q.rows});
  }
  s.diagonals = diagonals;
  if (!q_imag.data.empty()) s.q_imag = q_imag.view();
  bind_table(weight, s.weight, s.row_at.weight);
  bind_table(bias, s.bias, s.row_at.bias);
  bind_table(on_query, s.on_query, s.row_at.on_query);
  bind_table(on_key, s.on_key, s.row_at.on_key);
  bind_table(on_value, s.on_value, s.row_at.on_value);
  s.sink = sink;
  if (!mask.data.empty()) {
    s.mask = mask.view();
    s.mask.batch = q.batch;
    s.mask.heads = q.heads;
    if (mask.batch == 1) s.mask.batch_stride = 0;
    if (mask.heads == 1) s.mask.head_stride = 0;
  }
  return s;
}

template <class T>
template <class U>
Problem<U> Problem<T>::as() const {
  const auto table_as = [](const OwnedTable<T>& t) {
    return OwnedTable<U>{t.rows.template as<U>(), t.row_at};
  };
  return {.q = q.template as<U>(),
          .k = k.template as<U>(),
          .v = v.template as<U>(),
          .q_imag = q_imag.template as<U>(),
          .scale = scale,
          .frames = frames,
          .sweeps = sweeps,
          .diagonals = diagonals,
          .weight = table_as(weight),
          .bias = table_as(bias),
          .on_query = table_as(on_query),
          .on_key = table_as(on_key),
          .on_value = table_as(on_value),
          .sink = std::vector<U>(sink.begin(), sink.end()),
          .mask = mask};
}

template <class T>
void place_plainly(Problem<T>& problem, int64_t first_query, std::vector<KeyRange> visible) {
  const int64_t queries = problem.q.rows, keys = problem.k.rows;
  problem.frames = {{.queries = queries, .query_position = first_query, .keys = keys}};
  problem.sweeps = {{.key_ranges = std::move(visible)}};
  problem.diagonals = {.farthest = first_query + queries - 1, .count = queries + keys - 1};
}

std::vector<KeyRange> causal_runs(int64_t queries, int64_t first_query) {
  std::vector<KeyRange> key_ranges;
  for (int64_t i = 0; i < queries; ++i) key_ranges.push_back({0, first_query + i + 1});
  return key_ranges;
}

std::vector<KeyRange> whole_ranges(int64_t queries, int64_t keys) {
  return std::vector<KeyRange>(static_cast<size_t>(queries), KeyRange{0, keys});
}

template struct Problem<float>;
template struct Problem<double>;
template Problem<float> Problem<double>::as<float>() const;
template Problem<double> Problem<float>::as<double>() const;
template void place_plainly(Problem<float>&, int64_t, std::vector<KeyRange>);
template void place_plainly(Problem<double>&, int64_t, std::vector<KeyRange>);

}  // namespace sextant::oracle
