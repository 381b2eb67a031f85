// Frames, sweeps, rotations, pages and diagonals are checked in turn. Texts are made for an Error
// only, because each step of decoding is checked.
#include "sextant/attention/check_plan.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <span>
#include <vector>

#include "sextant/attention/check_field.h"

namespace sextant {
namespace {

// Distances are differences of positions. With this bound they do not overflow, and doubles
// represent them exactly.

// Without frames or sweeps no query would see any key, and all results would be zero.
void check_not_empty(const Plan& plan, const PlanShape& s) {
  if (s.batch == 0 || s.heads == 0 || s.queries == 0 || s.keys == 0) return;
  constexpr const char* kExpected = "at least one (causal() and others of layouts.h make them)";
  if (plan.frames.empty()) refuse_field("frames", kExpected, "none");
  if (plan.sweeps.empty()) refuse_field("sweeps", kExpected, "none");
}

int64_t pages_of_entry(const Plan& plan, const PlanShape& shape) {
  return (plan.pages.rows + shape.page_rows - 1) / shape.page_rows;
}

// Calls f(b, n, page) for each page of the table.
template <class F>
void each_page(const Plan& plan, const PlanShape& shape, F&& f) {
  const int64_t count = pages_of_entry(plan, shape);
  for (int64_t b = 0; b < (plan.pages.batch_stride == 0 ? 1 : shape.batch); ++b)
    for (int64_t n = 0; n < count; ++n) f(b, n, plan.pages.at[b * plan.pages.batch_stride + n]);
}

void check_page(int64_t b, int64_t n, int64_t page, int64_t first, int64_t last) {
  if (page < first || page > last)
    expect_between({"pages.at[" + text(b) + ", " + text(n) + "]"}, page, first, last);
}

void check_pages(const Plan& plan, const PlanShape& shape) {
  if (!plan.pages) return;
  if (shape.page_rows < kPageUnit || shape.page_rows % kPageUnit != 0)
    refuse_field("pages: k.rows", "a multiple of " + text(kPageUnit), text(shape.page_rows));
  if (plan.pages.rows < 0) refuse_field("pages.rows", "at least 0", text(plan.pages.rows));
  for (const Frame& f : plan.frames)
    if (f.key_row % kPageUnit != 0)
      refuse_field("pages: frames.key_row", "a multiple of " + text(kPageUnit), text(f.key_row));
}

void check_frame(size_t n, const Frame& f, const PlanShape& s) {
  const auto expect = [n](const char* member, int64_t got, int64_t low, int64_t high) {
    if (got < low || got > high)
      expect_between({"frames[" + std::to_string(n) + "]", member}, got, low, high);
  };
  if (f.batch != kEveryBatch) expect(".batch", f.batch, 0, s.batch - 1);
  expect(".query_row", f.query_row, 0, s.queries);
  expect(".queries", f.queries, 0, s.queries - f.query_row);
  expect(".key_row", f.key_row, 0, s.keys);
  expect(".keys", f.keys, 0, s.keys - f.key_row);
  expect(".query_position", f.query_position, -kFarthestPosition, kFarthestPosition);
  expect(".key_position", f.key_position, -kFarthestPosition, kFarthestPosition);
}

// Whether each frame is of another batch entry than the others, in ascending order.
bool ascend_by_batch(const std::vector<Frame>& frames) {
  for (size_t n = 0; n < frames.size(); ++n)
    if (frames[n].batch <= (n == 0 ? kEveryBatch : frames[n - 1].batch)) return false;
  return true;
}

void check_frames(const std::vector<Frame>& frames, const PlanShape& s) {
  for (size_t n = 0; n < frames.size(); ++n) check_frame(n, frames[n], s);
  if (frames.size() < 2 || ascend_by_batch(frames)) return;
  std::vector<const Frame*> by_row;
  for (const Frame& f : frames)
    if (f.queries > 0) by_row.push_back(&f);
  std::ranges::stable_sort(by_row, {}, [](const Frame* f) { return f->query_row; });
  // end[b] is the end of the last frame of batch entry b. A frame of kEveryBatch must begin after
  // the last frame of any entry.
  std::vector<int64_t> end(static_cast<size_t>(s.batch), 0);
  int64_t every_end = 0, any_end = 0;
  for (const Frame* f : by_row) {
    int64_t& own = f->batch == kEveryBatch ? any_end : end[static_cast<size_t>(f->batch)];
    if (f->query_row < std::max(own, every_end))
      refuse_field("frames", "each query row in at most one frame",
                   "row " + text(f->query_row) + " in two");
    const int64_t last = f->query_row + f->queries;
    if (f->batch == kEveryBatch) every_end = last;
    own = std::max(own, last);
    any_end = std::max(any_end, last);
  }
}

// The columns that the pairs so far rotate. It allocates only for unusually wide heads, because
// decoding checks a plan at each step.
class UsedColumns {
 public:
  explicit UsedColumns(int64_t columns) {
    if (columns > kNear) wide_.resize(static_cast<size_t>(columns), false);
  }
  // Marks a column. Returns whether it was marked before.
  bool mark(int column) {
    const auto at = static_cast<size_t>(column);
    const bool before = wide_.empty() ? near_[at] : wide_[at];
    if (wide_.empty())
      near_[at] = true;
    else
      wide_[at] = true;
    return before;
  }

 private:
  static constexpr int64_t kNear = 1024;
  std::bitset<kNear> near_;
  std::vector<bool> wide_;
};

}  // namespace

void check_rotation(const SideName& name, const SideRotation& side, const Rotation& rotation,
                    int64_t columns) {
  const auto& pairs = rotation.pairs;
  UsedColumns used(columns);
  for (size_t f = 0; f < pairs.size(); ++f) {
    for (const int column : {pairs[f].first, pairs[f].second}) {
      const auto field = [&] { return name.text() + ".rotation.pairs[" + std::to_string(f) + "]"; };
      if (column < 0 || column >= columns) expect_between({field()}, column, 0, columns - 1);
      if (used.mark(column))
        refuse_field(field(), "columns that no other pair turns", text(column));
    }
    if (pairs[f].axis < 0)
      refuse_field(name.text() + ".rotation.axis", "at least 0", text(pairs[f].axis));
    if (!std::isfinite(pairs[f].growth))
      refuse_field(name.text() + ".rotation.growth", "a finite number",
                   std::to_string(pairs[f].growth));
  }
  if (!side.offset.empty() && side.offset.size() != pairs.size())
    expect_equal({name.text(), ".offset"}, static_cast<int64_t>(side.offset.size()),
                 static_cast<int64_t>(pairs.size()), "one for each pair");
}

namespace {

// The rotations of a side: none, one, or one for each frame.
std::span<const Rotation> rotations_of(const SideRotation& side, size_t frames) {
  if (!side.rotation) return {};
  return {side.rotation, side.frame_stride == 0 ? 1 : frames};
}

void check_side(const SideName& name, const SideRotation& side, size_t frames, int64_t columns) {
  if (side.frame_stride < 0 || side.frame_stride > 1)
    expect_between({name.text(), ".frame_stride"}, side.frame_stride, 0, 1);
  for (const Rotation& rotation : rotations_of(side, frames))
    check_rotation(name, side, rotation, columns);
}

bool grows(const Rotation& rotation) {
  return std::ranges::any_of(rotation.pairs, [](const auto& pair) { return pair.growth != 0; });
}

// The factors e^{growth t} of a query and e^{-growth s} of a key depend on the distance t - s alone
// only if both sides have the same growth.
void check_growth(int64_t n, const Sweep& sweep, size_t frames) {
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
    refuse_field(SideName{n}.text(),
                 "the same pairs and growth for query and key where there is growth",
                 "different ones");
}

// Whether all distances between a query and a range of keys have diagonals, as tables require.
bool covers(const Diagonals& diagonals, const Frame& frame, int64_t query, KeyRange range) {
  return diagonals.index(frame.distance(query, range.first)) >= 0 &&
         diagonals.index(frame.distance(query, range.last - 1)) < diagonals.count;
}

// Calls f(frame, batch entry, query row, sweep, range) for each range that is not empty.
template <class F>
void each_range(const Plan& plan, const PlanShape& shape, F&& f) {
  for (const Frame& frame : plan.frames)
    each_entry(frame, shape.batch, [&](int64_t b) {
      for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i)
        for (size_t n = 0; n < plan.sweeps.size(); ++n) {
          const KeyRange range = visible_keys(plan.sweeps[n], frame, b, i);
          if (range.first < range.last) f(frame, b, i, n, range);
        }
    });
}

void check_sweeps(const Plan& plan, const PlanShape& shape) {
  for (size_t n = 0; n < plan.sweeps.size(); ++n) {
    const Sweep& sweep = plan.sweeps[n];
    const auto index = static_cast<int64_t>(n);
    check_side({index, ".query"}, sweep.query, plan.frames.size(), shape.columns);
    check_side({index, ".key"}, sweep.key, plan.frames.size(), shape.columns);
    check_growth(index, sweep, plan.frames.size());
    if (shape.queries > 0 && !sweep.key_ranges)
      refuse_field(SideName{index, ".key_ranges"}.text(), "data", "a null pointer");
  }
  each_range(plan, shape, [&](const Frame& frame, int64_t b, int64_t i, size_t n, KeyRange range) {
    for (size_t m = 0; m < n; ++m) {
      const KeyRange other = visible_keys(plan.sweeps[m], frame, b, i);
      if (std::max(range.first, other.first) < std::min(range.last, other.last))
        refuse_field("sweeps", "disjoint key ranges for each query",
                     "key ranges that overlap at query row " + text(i));
    }
  });
}

// The positions of some queries and keys of a frame.
struct AxisPositions {
  PositionRange queries, keys;
};

void check_positions(const std::string& name, const Diagonals& distances, const AxisPositions& of) {
  for (const int64_t position : {of.queries.first, of.queries.last, of.keys.first, of.keys.last})
    if (position < -kFarthestPosition || position > kFarthestPosition)
      expect_between({name, ": positions"}, position, -kFarthestPosition, kFarthestPosition);
  const int64_t nearest = of.queries.first - of.keys.last;
  const int64_t farthest = of.queries.last - of.keys.first;
  if (distances.index(farthest) < 0 || distances.index(nearest) >= distances.count)
    refuse_field(
        name + ".distances",
        "each distance of a query and a key of a frame, " + text(nearest) + " to " + text(farthest),
        text(distances.distance(distances.count - 1)) + " to " + text(distances.farthest));
}

void check_axis(const std::string& name, const PositionAxis& axis, const Plan& plan,
                const PlanShape& shape) {
  if (shape.queries > 0 && !axis.query_positions)
    refuse_field(name + ".query_positions", "data", "a null pointer");
  if (shape.keys > 0 && !axis.key_positions)
    refuse_field(name + ".key_positions", "data", "a null pointer");
  const Diagonals& distances = axis.distances;
  if (distances.count < 0 || distances.count > kMostAxisDistances)
    expect_between({name, ".distances.count"}, distances.count, 0, kMostAxisDistances);
  constexpr int64_t kFarthestDistance = 2 * kFarthestPosition;
  if (distances.farthest < -kFarthestDistance || distances.farthest > kFarthestDistance)
    expect_between({name, ".distances.farthest"}, distances.farthest, -kFarthestDistance,
                   kFarthestDistance);
  for (const auto& [table, map] : {std::pair{".bias", axis.bias}, {".on_query", axis.on_query}})
    if (!map.empty() && static_cast<int64_t>(map.size()) != distances.count)
      refuse_field(name + table, "a row for each of " + text(distances.count) + " distances",
                   text(static_cast<int64_t>(map.size())));
  AxisPositions all;
  for (const Frame& frame : plan.frames)
    if (frame.queries > 0 && frame.keys > 0)
      each_entry(frame, shape.batch, [&](int64_t b) {
        AxisPositions own;
        own.queries.include(axis.query_positions + b * axis.query_batch_stride + frame.query_row,
                            frame.queries);
        own.keys.include(axis.key_positions + b * axis.key_batch_stride + frame.key_row,
                         frame.keys);
        check_positions(name, distances, own);
        all.queries.include(own.queries);
        all.keys.include(own.keys);
      });
  if (all.queries.empty()) return;
  if (!axis.on_query.empty() && all.keys.width() >= kMostAxisPositions)
    refuse_field(name + ".key_positions",
                 "positions at most " + text(kMostAxisPositions - 1) +
                     " apart, as the axis has rows of axis_on_query",
                 text(all.keys.width()));
  if (const int64_t most = std::max(all.keys.width(), all.queries.width());
      most > kMostAxisDistances)
    refuse_field(name + ": positions", "positions at most " + text(kMostAxisDistances) + " apart",
                 text(most));
}

}  // namespace

void check_plan(const Plan& plan, const PlanShape& shape) {
  check_not_empty(plan, shape);
  check_pages(plan, shape);
  check_frames(plan.frames, shape);
  if (plan.diagonals.count < 0)
    refuse_field("diagonals.count", "at least 0", text(plan.diagonals.count));
  check_sweeps(plan, shape);
  if (std::ssize(plan.axes) > kMostAxes)
    refuse_field("axes", "at most " + text(kMostAxes), text(std::ssize(plan.axes)));
  for (size_t n = 0; n < plan.axes.size(); ++n)
    check_axis("axes[" + std::to_string(n) + "]", plan.axes[n], plan, shape);
}

PageRange pages_of(const Plan& plan, const PlanShape& shape) {
  PageRange range;
  if (plan.pages)
    each_page(plan, shape, [&](int64_t, int64_t, int64_t page) {
      range = {std::min(range.first, page), std::max(range.last, page)};
    });
  return range;
}

bool covers_distances(const Plan& plan, const PlanShape& shape) {
  bool all = true;
  each_range(plan, shape, [&](const Frame& frame, int64_t, int64_t i, size_t, KeyRange range) {
    all = all && covers(plan.diagonals, frame, i, range);
  });
  return all;
}

void check_distances(const Plan& plan, const PlanShape& shape) {
  each_range(plan, shape, [&](const Frame& frame, int64_t, int64_t i, size_t, KeyRange range) {
    if (!covers(plan.diagonals, frame, i, range))
      refuse_field("diagonals",
                   "every distance seen, " + text(frame.distance(i, range.last - 1)) + " to " +
                       text(frame.distance(i, range.first)) + " at query row " + text(i),
                   text(plan.diagonals.distance(plan.diagonals.count - 1)) + " to " +
                       text(plan.diagonals.farthest));
  });
}

void check_pages_in(const Plan& plan, const PlanShape& shape, const PageRange& range) {
  each_page(plan, shape, [&](int64_t b, int64_t n, int64_t page) {
    check_page(b, n, page, range.first, range.last);
  });
}

}  // namespace sextant
