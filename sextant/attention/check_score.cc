#include "sextant/attention/check_score.h"

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "sextant/base/error.h"

namespace sextant {
namespace {

// Distances are differences of positions and must not overflow; doubles hold these exactly.
constexpr int64_t kFarthestPosition = int64_t{1} << 52;

std::string text(int64_t value) { return std::to_string(value); }

[[noreturn]] void bad(const std::string& field, const std::string& expected,
                      const std::string& got) {
  fail("attention: " + field + ": expected " + expected + ", but got " + got);
}

void expect_equal(const std::string& field, int64_t got, int64_t expected, const char* why) {
  if (got != expected) bad(field, text(expected) + " (" + why + ")", text(got));
}

void expect_between(const std::string& field, int64_t got, int64_t low, int64_t high) {
  if (got < low || got > high) bad(field, text(low) + " to " + text(high), text(got));
}

template <class AView>
void check_data(const std::string& name, const AView& view) {
  const int64_t sizes[] = {view.batch, view.heads, view.rows, view.columns};
  for (const int64_t size : sizes)
    if (size < 0) bad(name, "sizes of at least 0", text(size));
  const bool empty = std::ranges::any_of(sizes, [](int64_t size) { return size == 0; });
  if (!empty && !view.data) bad(name, "data", "a null pointer");
}

template <class AView>
void check_shape(const std::string& name, const AView& view, int64_t batch, int64_t heads,
                 int64_t rows, int64_t columns) {
  check_data(name, view);
  expect_equal(name + ".batch", view.batch, batch, "as q");
  expect_equal(name + ".heads", view.heads, heads, "to fit the operands");
  expect_equal(name + ".rows", view.rows, rows, "to fit the operands");
  expect_equal(name + ".columns", view.columns, columns, "to fit the operands");
}

template <class T>
void check_qkv(const Score<T>& s) {
  check_data("q", s.q);
  check_data("k", s.k);
  check_data("v", s.v);
  if (!s.pages) expect_equal("k.batch", s.k.batch, s.q.batch, "as q");
  expect_equal("v.batch", s.v.batch, s.k.batch, "as k");
  expect_equal("k.columns", s.k.columns, s.q.columns, "as q");
  expect_equal("v.heads", s.v.heads, s.k.heads, "as k");
  expect_equal("v.rows", s.v.rows, s.k.rows, "as k");
  if (s.k.heads == 0 ? s.q.heads != 0 : s.q.heads % s.k.heads != 0)
    bad("q.heads", "a multiple of the " + text(s.k.heads) + " key heads", text(s.q.heads));
  if (!std::isfinite(s.scale)) bad("scale", "a finite number", std::to_string(s.scale));
}

template <class T>
void check_pages(const Score<T>& s) {
  if (!s.pages) return;
  if (s.k.rows < kPageUnit || s.k.rows % kPageUnit != 0)
    bad("pages: k.rows", "a multiple of " + text(kPageUnit), text(s.k.rows));
  if (s.pages.rows < 0) bad("pages.rows", "at least 0", text(s.pages.rows));
  const int64_t count = (s.pages.rows + s.k.rows - 1) / s.k.rows;
  for (int64_t b = 0; b < (s.pages.batch_stride == 0 ? 1 : s.q.batch); ++b)
    for (int64_t n = 0; n < count; ++n)
      expect_between("pages.at[" + text(b) + ", " + text(n) + "]",
                     s.pages.at[b * s.pages.batch_stride + n], 0, s.k.batch - 1);
  for (const Frame& f : s.frames)
    if (f.key_row % kPageUnit != 0)
      bad("pages: frames.key_row", "a multiple of " + text(kPageUnit), text(f.key_row));
}

template <class T>
void check_frame(const std::string& name, const Frame& f, const Score<T>& s) {
  if (f.batch != kEveryBatch) expect_between(name + ".batch", f.batch, 0, s.q.batch - 1);
  expect_between(name + ".query_row", f.query_row, 0, s.q.rows);
  expect_between(name + ".queries", f.queries, 0, s.q.rows - f.query_row);
  expect_between(name + ".key_row", f.key_row, 0, key_rows(s));
  expect_between(name + ".keys", f.keys, 0, key_rows(s) - f.key_row);
  expect_between(name + ".query_position", f.query_position, -kFarthestPosition, kFarthestPosition);
  expect_between(name + ".key_position", f.key_position, -kFarthestPosition, kFarthestPosition);
}

template <class T>
void check_frames(const Score<T>& s) {
  for (size_t n = 0; n < s.frames.size(); ++n)
    check_frame("frames[" + std::to_string(n) + "]", s.frames[n], s);
  std::vector<const Frame*> by_row;
  for (const Frame& f : s.frames)
    if (f.queries > 0) by_row.push_back(&f);
  std::ranges::stable_sort(by_row, {}, [](const Frame* f) { return f->query_row; });
  // end[b]: where the last frame of batch entry b ended; of kEveryBatch: of any frame of any entry.
  std::vector<int64_t> end(static_cast<size_t>(s.q.batch), 0);
  int64_t every_end = 0, any_end = 0;
  for (const Frame* f : by_row) {
    int64_t& own = f->batch == kEveryBatch ? any_end : end[static_cast<size_t>(f->batch)];
    if (f->query_row < std::max(own, every_end))
      bad("frames", "each query row in at most one frame", "row " + text(f->query_row) + " in two");
    const int64_t last = f->query_row + f->queries;
    if (f->batch == kEveryBatch) every_end = last;
    own = std::max(own, last);
    any_end = std::max(any_end, last);
  }
}

}  // namespace

void check_rotation(const std::string& name, const SideRotation& side, const Rotation& rotation,
                    int64_t rows, int64_t columns) {
  const auto& pairs = rotation.pairs;
  std::vector<bool> used(static_cast<size_t>(columns), false);
  for (size_t f = 0; f < pairs.size(); ++f) {
    for (const int column : {pairs[f].first, pairs[f].second}) {
      const std::string field = name + ".rotation.pairs[" + std::to_string(f) + "]";
      expect_between(field, column, 0, columns - 1);
      if (used[static_cast<size_t>(column)])
        bad(field, "columns that no other pair turns", text(column));
      used[static_cast<size_t>(column)] = true;
    }
    if (pairs[f].axis < 0) bad(name + ".rotation.axis", "at least 0", text(pairs[f].axis));
    if (!std::isfinite(pairs[f].growth))
      bad(name + ".rotation.growth", "a finite number", std::to_string(pairs[f].growth));
  }
  if (!pairs.empty() && rows > 0 && !side.rotary_positions)
    bad(name + ".rotary_positions", "data", "a null pointer");
  if (!side.offset.empty())
    expect_equal(name + ".offset", static_cast<int64_t>(side.offset.size()),
                 static_cast<int64_t>(pairs.size()), "one for each pair");
}

namespace {

// The rotations of a turn: one, or as many as there are frames.
std::span<const Rotation> rotations_of(const SideRotation& side, size_t frames) {
  if (!side.rotation) return {};
  return {side.rotation, side.frame_stride == 0 ? 1 : frames};
}

void check_side(const std::string& name, const SideRotation& side, size_t frames, int64_t rows,
                int64_t columns) {
  expect_between(name + ".frame_stride", side.frame_stride, 0, 1);
  for (const Rotation& rotation : rotations_of(side, frames))
    check_rotation(name, side, rotation, rows, columns);
}

bool grows(const Rotation& rotation) {
  return std::ranges::any_of(rotation.pairs, [](const auto& pair) { return pair.growth != 0; });
}

// Growth cancels between the two sides only if both grow alike.
void check_growth(const std::string& name, const Sweep& sweep, size_t frames) {
  const auto of_queries = rotations_of(sweep.query, frames);
  const auto of_keys = rotations_of(sweep.key, frames);
  if (std::ranges::none_of(of_queries, grows) && std::ranges::none_of(of_keys, grows)) return;
  const auto same_pair = [](const Rotation::Pair& a, const Rotation::Pair& b) {
    return a.first == b.first && a.second == b.second && a.growth == b.growth;
  };
  const auto alike = [&](const Rotation& a, const Rotation& b) {
    return std::ranges::equal(a.pairs, b.pairs, same_pair);
  };
  if (!std::ranges::equal(of_queries, of_keys, alike))
    bad(name, "the same pairs and growth for query and key where there is growth",
        "different ones");
}

template <class T>
bool any_table(const Score<T>& s) {
  return s.weight.rows || s.bias.rows || s.on_query.rows || s.on_key.rows || s.on_value.rows ||
         s.query_bias;
}

// One visible run: every distance must have a diagonal.
template <class T>
void check_distances(const Score<T>& s, const Frame& frame, int64_t query, KeyRange range) {
  const int64_t far = s.diagonals.index(frame.distance(query, range.first));
  const int64_t near = s.diagonals.index(frame.distance(query, range.last - 1));
  if (far < 0 || near >= s.diagonals.count)
    bad("diagonals",
        "every distance seen, " + text(frame.distance(query, range.last - 1)) + " to " +
            text(frame.distance(query, range.first)) + " at query row " + text(query),
        text(s.diagonals.distance(s.diagonals.count - 1)) + " to " + text(s.diagonals.farthest));
}

template <class T>
void check_sweeps(const Score<T>& s) {
  for (size_t n = 0; n < s.sweeps.size(); ++n) {
    const std::string name = "sweeps[" + std::to_string(n) + "]";
    check_side(name + ".query", s.sweeps[n].query, s.frames.size(), s.q.rows, s.q.columns);
    check_side(name + ".key", s.sweeps[n].key, s.frames.size(), key_rows(s), s.k.columns);
    check_growth(name, s.sweeps[n], s.frames.size());
    if (s.q.rows > 0 && !s.sweeps[n].key_ranges)
      bad(name + ".key_ranges", "data", "a null pointer");
  }
  const bool tables = any_table(s);
  std::vector<KeyRange> seen;
  for (const Frame& frame : s.frames) {
    const int64_t from = frame.batch == kEveryBatch ? 0 : frame.batch;
    const int64_t to = frame.batch == kEveryBatch ? s.q.batch : frame.batch + 1;
    for (int64_t b = from; b < to; ++b)
      for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i) {
        seen.clear();
        for (const Sweep& sweep : s.sweeps) {
          const KeyRange range = visible_keys(sweep, frame, b, i);
          if (range.first >= range.last) continue;
          if (tables) check_distances(s, frame, i, range);
          for (const KeyRange& other : seen)
            if (range.first < other.last && other.first < range.last)
              bad("sweeps", "disjoint key ranges for each query",
                  "key ranges that overlap at query row " + text(i));
          seen.push_back(range);
        }
      }
  }
}

template <class T>
void check_table(const std::string& name, const Table<T>& table, const Score<T>& s,
                 int64_t fewest_columns, int64_t most_columns) {
  if (!table.rows) return;
  check_data(name, table.rows);
  expect_equal(name + ".rows.batch", table.rows.batch, 1, "one table");
  if (table.rows.heads != 1 && table.rows.heads != s.q.heads)
    bad(name + ".rows.heads", "1 or " + text(s.q.heads), text(table.rows.heads));
  expect_between(name + ".rows.columns", table.rows.columns, fewest_columns, most_columns);
  if (table.row_at.empty()) {
    if (table.rows.rows < s.diagonals.count)
      bad(name + ".rows.rows",
          "at least " + text(s.diagonals.count) + " (one row for each diagonal, there is no map)",
          text(table.rows.rows));
    return;
  }
  expect_equal(name + ".row_at", static_cast<int64_t>(table.row_at.size()), s.diagonals.count,
               "one for each diagonal");
  for (const int32_t row : table.row_at)
    if (row < 0 || row >= table.rows.rows)
      bad(name + ".row_at", "rows 0 to " + text(table.rows.rows - 1), text(row));
}

template <class T>
void check_query_bias(const Score<T>& s) {
  const auto& x = s.query_bias;
  if (!x) return;
  check_shape("query_bias", x, s.q.batch, s.q.heads, s.q.rows, x.columns);
  if (x.columns < s.diagonals.count)
    bad("query_bias.columns", "at least " + text(s.diagonals.count) + " (one for each diagonal)",
        text(x.columns));
}

template <class T>
void check_key_bias(const Score<T>& s) {
  if (s.key_bias) check_shape("key_bias", s.key_bias, s.q.batch, s.q.heads, key_rows(s), 1);
}

template <class T>
void check_table_grad(const std::string& name, const View<T>& grad, const Table<T>& table) {
  if (!grad) return;
  if (!table.rows) bad(name, "no gradient (the operand is absent)", "a view");
  check_shape(name, grad, table.rows.batch, table.rows.heads, table.rows.rows, table.rows.columns);
}

}  // namespace

template <class T>
void check_score(const Score<T>& s) {
  check_qkv(s);
  check_pages(s);
  check_frames(s);
  if (s.diagonals.count < 0) bad("diagonals.count", "at least 0", text(s.diagonals.count));
  if (s.q_imag) check_shape("q_imag", s.q_imag, s.q.batch, s.q.heads, s.q.rows, s.q.columns);
  check_table("weight", s.weight, s, 1, 1);
  check_table("bias", s.bias, s, 1, 1);
  check_table("on_query", s.on_query, s, 0, s.q.columns);
  check_table("on_key", s.on_key, s, 0, s.k.columns);
  check_table("on_value", s.on_value, s, s.v.columns, s.v.columns);
  check_query_bias(s);
  check_key_bias(s);
  check_sweeps(s);
  if (!s.sink.empty())
    expect_equal("sink", static_cast<int64_t>(s.sink.size()), s.q.heads, "one for each query head");
  if (s.mask) check_shape("mask", s.mask, s.q.batch, s.q.heads, s.q.rows, key_rows(s));
}

template <class T, class U>
void check_attended(const Score<T>& s, const Attended<U>& attended) {
  check_shape("out", attended.out, s.q.batch, s.q.heads, s.q.rows, s.v.columns);
  check_shape("lse", attended.lse, s.q.batch, s.q.heads, s.q.rows, 1);
}

template <class T>
void check_grad(const Score<T>& s, AnyView<const T> d_out, const ScoreGrad<T>& grad) {
  if (s.pages) bad("pages", "none where gradients are asked for", "a table");
  check_shape("d_out", d_out, s.q.batch, s.q.heads, s.q.rows, s.v.columns);
  if (grad.q) check_shape("grad.q", grad.q, s.q.batch, s.q.heads, s.q.rows, s.q.columns);
  if (grad.k) check_shape("grad.k", grad.k, s.k.batch, s.k.heads, s.k.rows, s.k.columns);
  if (grad.v) check_shape("grad.v", grad.v, s.v.batch, s.v.heads, s.v.rows, s.v.columns);
  if (grad.q_imag) {
    if (!s.q_imag) bad("grad.q_imag", "no gradient (the operand is absent)", "a view");
    check_shape("grad.q_imag", grad.q_imag, s.q.batch, s.q.heads, s.q.rows, s.q.columns);
  }
  check_table_grad("grad.weight", grad.weight, s.weight);
  check_table_grad("grad.bias", grad.bias, s.bias);
  check_table_grad("grad.on_query", grad.on_query, s.on_query);
  check_table_grad("grad.on_key", grad.on_key, s.on_key);
  check_table_grad("grad.on_value", grad.on_value, s.on_value);
  if (grad.query_bias) {
    if (!s.query_bias) bad("grad.query_bias", "no gradient (the operand is absent)", "a view");
    check_shape("grad.query_bias", grad.query_bias, s.q.batch, s.q.heads, s.q.rows,
                s.query_bias.columns);
  }
  if (grad.key_bias) {
    if (!s.key_bias) bad("grad.key_bias", "no gradient (the operand is absent)", "a view");
    check_shape("grad.key_bias", grad.key_bias, s.q.batch, s.q.heads, s.k.rows, 1);
  }
  if (!grad.sink.empty())
    expect_equal("grad.sink", static_cast<int64_t>(grad.sink.size()),
                 static_cast<int64_t>(s.sink.size()), "as sink");
}

template void check_score(const Score<float>&);
template void check_score(const Score<double>&);
template void check_attended(const Score<float>&, const Attended<float>&);
template void check_attended(const Score<float>&, const Attended<const float>&);
template void check_attended(const Score<double>&, const Attended<double>&);
template void check_attended(const Score<double>&, const Attended<const double>&);
template void check_grad(const Score<float>&, AnyView<const float>, const ScoreGrad<float>&);
template void check_grad(const Score<double>&, AnyView<const double>, const ScoreGrad<double>&);

}  // namespace sextant
