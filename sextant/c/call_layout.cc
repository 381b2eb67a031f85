// Members of sextant_attention become frames and one window (layouts.h); a sextant_layout is
// copied. All that memory depends on is checked first.
#include "sextant/c/call_layout.h"

#include <algorithm>
#include <span>
#include <string>

#include "sextant/attention/layouts.h"
#include "sextant/c/handles.h"

namespace sextant::c {
namespace {

[[noreturn]] void refuse(const std::string& member, const std::string& expected,
                         const std::string& got) {
  fail("attention: " + member + ": expected " + expected + ", but got " + got);
}

void expect_between(const char* member, int64_t got, int64_t low, int64_t high) {
  if (got < low || got > high)
    refuse(member, std::to_string(low) + " to " + std::to_string(high), std::to_string(got));
}

std::span<const int64_t> lengths_of(const sextant_attention& a) {
  return {a.lengths, static_cast<size_t>(a.sequences)};
}

void check_lengths(const sextant_attention& a) {
  if (a.first_query || a.query_lengths || a.key_lengths)
    refuse("lengths", "NULL beside first_query, query_lengths and key_lengths", "both");
  int64_t rows = 0;
  for (const int64_t length : lengths_of(a)) {
    if (length < 0 || length > kLargestView) refuse("lengths", "0 to 2^60", std::to_string(length));
    rows += length;
    if (rows > std::min(a.q.rows, a.k.rows)) break;  // and the sum does not overflow
  }
  if (a.q.rows != rows || a.k.rows != rows)
    refuse("lengths",
           "a sum of " + std::to_string(a.q.rows) + " queries and " + std::to_string(a.k.rows) +
               " keys",
           (rows > std::min(a.q.rows, a.k.rows) ? "at least " : "") + std::to_string(rows));
}

bool reads_distances(const sextant_terms& terms) {
  bool tables = !is_absent(terms.query_bias);
  each_table(terms, terms, [&](const char*, const sextant_table& table, const auto&) {
    tables = tables || !is_absent(table.table);
  });
  return tables;
}

// Whether positions of queries have no effect.
bool needs_no_positions(const sextant_attention& a, const sextant_terms& terms) {
  return a.sees == SEXTANT_ALL_KEYS && !a.rope && !reads_distances(terms);
}

void check_window(const sextant_attention& a) {
  expect_between("sees", a.sees, SEXTANT_CAUSAL, SEXTANT_CONTEXT);
  const auto expect_zero = [](const char* member, int64_t got, const char* where) {
    if (got != 0) refuse(member, std::string("0 ") + where, std::to_string(got));
  };
  if (a.window < 0) refuse("window", "at least 0", std::to_string(a.window));
  if (a.sees != SEXTANT_CAUSAL)
    expect_zero("window", a.window, "without SEXTANT_CAUSAL (SEXTANT_CONTEXT has left and right)");
  if (a.sees == SEXTANT_CONTEXT) {
    expect_between("left", a.left, 0, kEveryDistance);
    expect_between("right", a.right, 0, kEveryDistance);
  } else {
    expect_zero("left", a.left, "without SEXTANT_CONTEXT");
    expect_zero("right", a.right, "without SEXTANT_CONTEXT");
  }
}

AttentionWindow window_of(const sextant_attention& a) {
  switch (a.sees) {
    case SEXTANT_CAUSAL:
      return {.left = a.window == 0 ? kEveryDistance : a.window - 1, .right = 0};
    case SEXTANT_CONTEXT:
      return {.left = a.left, .right = a.right};
    default:
      return {};
  }
}

// The rows of batch entry b, or, if it is kEveryBatch, of all.
Frame frame_of(const sextant_attention& a, int64_t b, bool positions) {
  const auto rows_of = [&](const char* member, const int64_t* lengths, int64_t rows) {
    if (!lengths) return rows;
    if (lengths[b] < 0 || lengths[b] > rows)
      refuse(std::string(member) + "[" + std::to_string(b) + "]", "0 to " + std::to_string(rows),
             std::to_string(lengths[b]));
    return lengths[b];
  };
  const int64_t queries = rows_of("query_lengths", a.query_lengths, a.q.rows);
  const int64_t keys = rows_of("key_lengths", a.key_lengths, a.k.rows);
  if (a.first_query)
    expect_between("first_query", *a.first_query, -kFarthestPosition, kFarthestPosition);
  else if (queries > keys && positions)
    refuse("q.rows",
           "at most the " + std::to_string(keys) +
               " rows of k, as the queries are the last rows, or a first_query",
           std::to_string(queries));
  return {.batch = b,
          .queries = queries,
          .query_position = a.first_query ? *a.first_query : std::max<int64_t>(keys - queries, 0),
          .keys = keys};
}

// Writes the frames that the members of sextant_attention say.
void set_frames(const sextant_attention& a, const sextant_terms& terms,
                std::vector<Frame>& frames) {
  check_window(a);
  frames.clear();
  if (a.sequences < 0) refuse("sequences", "at least 0", std::to_string(a.sequences));
  if (a.sequences != 0 && !a.lengths)
    refuse("lengths", std::to_string(a.sequences) + " lengths, as sequences says", "NULL");
  if (a.lengths) {
    check_lengths(a);
    return packed_frames(lengths_of(a), frames);
  }
  const bool positions = !needs_no_positions(a, terms);
  if (!a.query_lengths && !a.key_lengths)
    frames.push_back(frame_of(a, kEveryBatch, positions));
  else
    for (int64_t b = 0; b < a.q.batch; ++b) frames.push_back(frame_of(a, b, positions));
}

sextant_layout layout_of(const sextant_attention& a) {
  const sextant_layout l = read(a.layout, "layout");
  if (a.first_query || a.sees != SEXTANT_CAUSAL || a.window != 0 || a.left != 0 || a.right != 0 ||
      a.lengths || a.sequences != 0 || a.query_lengths || a.key_lengths || a.rope)
    refuse("layout", "zero in the members from first_query to rope, whose place it takes",
           "another value");
  const auto expect_list = [](const char* member, const void* list, int64_t count) {
    if (count < 0 || (count > 0 && !list))
      refuse(member, "as many as the count says, " + std::to_string(count), list ? "some" : "NULL");
  };
  expect_list("layout.frames", l.frames, l.frame_count);
  expect_list("layout.sweeps", l.sweeps, l.sweep_count);
  expect_between("layout.diagonals", l.diagonals, 0, kLargestView);
  expect_between("layout.farthest", l.farthest, -kEveryDistance, kEveryDistance);
  return l;
}

}  // namespace

Diagonals diagonals_of(const sextant_attention& a) {
  if (a.layout) {
    const sextant_layout l = layout_of(a);
    return {.farthest = l.farthest, .count = l.diagonals};
  }
  std::vector<Frame> frames;
  set_frames(a, read_or_none(a.terms, "terms"), frames);
  return seen_distances(frames, window_of(a));
}

const Rotation* CallLayout::keep(const sextant_rope* rope) {
  if (rope) rotations_.push_back(need(rope, "rope").rotation);
  return rotation_of(rope);
}

// Rows are copied without gaps, as strides may be any.
SideRotation CallLayout::side_of(const sextant_side& side, int64_t batch, int64_t rows,
                                 std::vector<int64_t>& positions) {
  positions.clear();
  const Rotation* rotation = keep(side.rope);
  if (!rotation || !side.positions) return {.rotation = rotation};
  int64_t axes = 1;
  for (const Rotation::Pair& pair : rotation->pairs) axes = std::max<int64_t>(axes, pair.axis + 1);
  if (side.axis_stride == 0) axes = 1;
  const int64_t entries = side.batch_stride == 0 ? 1 : batch;
  for (int64_t b = 0; b < entries; ++b)
    for (int64_t axis = 0; axis < axes; ++axis)
      for (int64_t row = 0; row < rows; ++row)
        positions.push_back(side.positions[b * side.batch_stride + axis * side.axis_stride +
                                           row * side.row_stride]);
  positions.push_back(0);  // the address is not null, even without rows
  return {.rotation = rotation,
          .rotary_positions = positions.data(),
          .batch_stride = entries == 1 ? 0 : axes * rows,
          .axis_stride = axes == 1 ? 0 : rows};
}

void CallLayout::set_sweeps(const sextant_attention& a, const sextant_layout& l) {
  const auto count = static_cast<size_t>(l.sweep_count);
  const int64_t keys = l.pages ? l.keys : a.k.rows;
  if (ranges_.size() < count) ranges_.resize(count);
  if (positions_.size() < 2 * count) positions_.resize(2 * count);
  for (size_t n = 0; n < count; ++n) {
    const sextant_sweep& from = l.sweeps[n];
    const auto name = [n] { return "layout.sweeps[" + std::to_string(n) + "]"; };
    std::vector<KeyRange>& ranges = ranges_[n];
    ranges.clear();
    if (a.q.rows > 0 && !from.ranges) refuse(name() + ".ranges", "data", "NULL");
    if (from.batch_stride != 0 && from.batch_stride < a.q.rows)
      refuse(name() + ".batch_stride", "0, or at least the rows of q, " + std::to_string(a.q.rows),
             std::to_string(from.batch_stride));
    for (int64_t b = 0; b < (from.batch_stride == 0 ? 1 : a.q.batch); ++b)
      for (int64_t i = 0; i < a.q.rows; ++i) {
        const sextant_range& range = from.ranges[b * from.batch_stride + i];
        ranges.push_back({range.first, range.last});
      }
    plan_.sweeps.push_back({.query = side_of(from.query, a.q.batch, a.q.rows, positions_[2 * n]),
                            .key = side_of(from.key, a.q.batch, keys, positions_[2 * n + 1]),
                            .key_ranges = ranges.data(),
                            .batch_stride = from.batch_stride == 0 ? 0 : a.q.rows});
  }
}

void CallLayout::set_pages(const sextant_attention& a, const sextant_layout& l) {
  pages_.clear();
  plan_.pages = {};
  if (!l.pages) {
    if (l.pages_stride != 0 || l.keys != 0)
      refuse("layout.pages", "page numbers, as pages_stride or keys is not 0", "NULL");
    return;
  }
  expect_between("layout.keys", l.keys, 0, kFarthestPosition);
  if (a.k.rows < kPageUnit || a.k.rows % kPageUnit != 0)
    refuse("k.rows", "a multiple of " + std::to_string(kPageUnit) + ", the rows of a page",
           std::to_string(a.k.rows));
  const int64_t each = (l.keys + a.k.rows - 1) / a.k.rows;
  if (l.pages_stride != 0 && l.pages_stride < each)
    refuse("layout.pages_stride", "0, or at least " + std::to_string(each) + " pages",
           std::to_string(l.pages_stride));
  for (int64_t b = 0; b < (l.pages_stride == 0 ? 1 : a.q.batch); ++b)
    pages_.insert(pages_.end(), l.pages + b * l.pages_stride, l.pages + b * l.pages_stride + each);
  pages_.push_back(0);  // the address is not null, even without rows
  plan_.pages = {
      .at = pages_.data(), .batch_stride = l.pages_stride == 0 ? 0 : each, .rows = l.keys};
}

void CallLayout::set_axes(const sextant_attention& a, const sextant_terms& terms, int64_t keys) {
  if (terms.axis_count > kMostAxes)
    refuse("terms.axis_count", "at most " + std::to_string(kMostAxes),
           std::to_string(terms.axis_count));
  if (terms.axis_count < 0 || (terms.axis_count > 0 && !terms.axes))
    refuse("terms.axes", "as many as axis_count says, " + std::to_string(terms.axis_count),
           terms.axes ? "some" : "NULL");
  const auto count = static_cast<size_t>(terms.axis_count);
  plan_.axes.clear();
  if (axis_positions_.size() < 2 * count) axis_positions_.resize(2 * count);
  if (axis_rows_.size() < 2 * count) axis_rows_.resize(2 * count);
  for (size_t n = 0; n < count; ++n) {
    const sextant_axis& from = terms.axes[n];
    const auto name = [n] { return "terms.axes[" + std::to_string(n) + "]"; };
    const auto positions = [&](size_t side, const int64_t* at, int64_t stride, int64_t rows) {
      std::vector<int64_t>& own = axis_positions_[2 * n + side];
      own.clear();
      const char* const member = side == 0 ? ".query_positions" : ".key_positions";
      if (rows > 0 && !at) refuse(name() + member, "data", "NULL");
      if (stride != 0 && stride < rows)
        refuse(name() + member,
               "a batch stride of 0, or at least " + std::to_string(rows) + " rows",
               std::to_string(stride));
      for (int64_t b = 0; b < (stride == 0 ? 1 : a.q.batch); ++b)
        own.insert(own.end(), at + b * stride, at + b * stride + rows);
      own.push_back(0);  // the address is not null, even without rows
      return own.data();
    };
    if (from.distances < 0 || from.distances > kMostAxisDistances)
      refuse(name() + ".distances", "0 to " + std::to_string(kMostAxisDistances),
             std::to_string(from.distances));
    const auto rows = [&](size_t table, const int32_t* map) -> std::span<const int32_t> {
      std::vector<int32_t>& own = axis_rows_[2 * n + table];
      own.clear();
      if (map) own.assign(map, map + from.distances);
      return own;
    };
    PositionAxis& axis = plan_.axes.emplace_back();
    axis.query_positions = positions(0, from.query_positions, from.query_batch_stride, a.q.rows);
    axis.key_positions = positions(1, from.key_positions, from.key_batch_stride, keys);
    axis.query_batch_stride = from.query_batch_stride == 0 ? 0 : a.q.rows;
    axis.key_batch_stride = from.key_batch_stride == 0 ? 0 : keys;
    axis.distances = {.farthest = from.farthest, .count = from.distances};
    axis.bias = rows(0, from.bias_rows);
    axis.on_query = rows(1, from.on_query_rows);
  }
}

void CallLayout::set(const sextant_attention& a, const sextant_terms& terms) {
  plan_.sweeps.clear();
  rotations_.clear();
  without_positions_ = false;
  said_ = {.sees = a.sees, .window = a.window, .left = a.left, .right = a.right};
  if (a.layout) {
    const sextant_layout l = layout_of(a);
    plan_.frames.clear();
    for (int64_t n = 0; n < l.frame_count; ++n) {
      const sextant_frame& f = l.frames[n];
      plan_.frames.push_back(
          {f.batch, f.query_row, f.queries, f.query_position, f.key_row, f.keys, f.key_position});
    }
    plan_.diagonals = {.farthest = l.farthest, .count = l.diagonals};
    set_pages(a, l);
    set_sweeps(a, l);
  } else {
    set_frames(a, terms, plan_.frames);
    without_positions_ = !a.first_query && std::ranges::any_of(plan_.frames, [](const Frame& f) {
      return f.queries > f.keys;
    });
    plan_.pages = {};
    plan_.diagonals = seen_distances(plan_.frames, window_of(a));
    if (ranges_.empty()) ranges_.resize(1);
    const int64_t stride = key_ranges(plan_.frames, window_of(a), ranges_[0]);
    if (ranges_[0].empty()) ranges_[0].emplace_back();  // the address is not null
    const SideRotation side = {.rotation = keep(a.rope)};
    plan_.sweeps.push_back(
        {.query = side, .key = side, .key_ranges = ranges_[0].data(), .batch_stride = stride});
  }
  for (const auto& rotation : rotations_)
    for (size_t f = 0; f < rotation->pairs.size(); ++f)
      for (const int column : {rotation->pairs[f].first, rotation->pairs[f].second})
        if (column >= a.q.columns)
          refuse("rope", "pairs of columns below " + std::to_string(a.q.columns) + " (of q)",
                 "column " + std::to_string(column) + " in pair " + std::to_string(f));
  set_axes(a, terms, plan_.pages ? plan_.pages.rows : a.k.rows);
  maps_.set(terms, plan_.diagonals.count);
  plan_.row_at = maps_.rows();
}

void CallLayout::check_call(const sextant_attention& a, const sextant_terms& terms) const {
  const auto expect_planned = [](const char* member, int64_t got, int64_t planned) {
    if (got != 0 && got != planned)
      refuse(member, std::to_string(planned) + " (as planned)", std::to_string(got));
  };
  expect_planned("sees", a.sees, said_.sees);
  expect_planned("window", a.window, said_.window);
  expect_planned("left", a.left, said_.left);
  expect_planned("right", a.right, said_.right);
  if (a.rope && (rotations_.empty() || need(a.rope, "rope").rotation != rotations_.front()))
    refuse("rope", "that of the plan, or NULL", "another");
  if (without_positions_ && reads_distances(terms))
    refuse("terms", "no tables by distance, as the plan has more queries than keys",
           "some without a first_query");
  if (plan_.diagonals.count == 0) return;
  each_table(terms, maps_, [](const char* name, const sextant_table& table, const auto& map) {
    if (is_absent(table.table) || (table.rows != nullptr) == !map.empty()) return;
    const bool none = map.empty();
    refuse(Name("terms.", name, ".rows").text(), none ? "NULL, as in the plan" : "the plan's map",
           none ? "a map" : "NULL");
  });
}

}  // namespace sextant::c
