// The keys that consecutive queries of a frame see, counted from the frame's first key.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/cpu/problem.h"
#include "sextant/attention/cpu/sizes.h"

namespace sextant::cpu {

inline KeyRange intersect(KeyRange a, KeyRange b) {
  return {std::max(a.first, b.first), std::min(a.last, b.last)};
}
inline bool empty(KeyRange range) { return range.first >= range.last; }
// The shortest range that contains both.
inline KeyRange hull(KeyRange a, KeyRange b) {
  if (empty(a)) return b;
  if (empty(b)) return a;
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}

// The rotations in which strips see keys: one, or several, which may be all of them.
struct RotationsSeen {
  size_t rotation = 0;
  bool several = false;

  bool has(size_t other) const { return several || other == rotation; }
};
inline constexpr RotationsSeen kAllRotations = {0, true};

class Visibility {
 public:
  // Memory for `rows` queries.
  Visibility(const Problem& problem, int64_t rows, Arena& arena)
      : problem_(&problem),
        sweeps_(static_cast<int64_t>(problem.score.sweeps.size())),
        rows_(round_up(rows, kStrip)),
        key_ranges_(arena.take<KeyRange>(sweeps_ * rows_)),
        hulls_(arena.take<KeyRange>(sweeps_ * rows_ / kStrip)),
        common_(arena.take<KeyRange>(sweeps_ * rows_ / kStrip)) {}

  // Sets the ranges of queries [first, first + rows) of a block.
  void look(const BatchFrame& block, int64_t first, int64_t rows) {
    all_ = {};
    for (int64_t n = 0; n < sweeps_; ++n) {
      const Sweep& sweep = problem_->score.sweeps[static_cast<size_t>(n)];
      const Frame& frame = block.frame;
      std::fill_n(hulls_ + n * rows_ / kStrip, rows_ / kStrip, KeyRange{});
      for (int64_t i = 0; i < rows; ++i) {
        KeyRange range = visible_keys(sweep, frame, frame.batch, frame.query_row + first + i);
        range = empty(range) ? KeyRange{}
                             : KeyRange{range.first - frame.key_row, range.last - frame.key_row};
        key_ranges_[n * rows_ + i] = range;
        KeyRange& hull_keys = hulls_[(n * rows_ + i) / kStrip];
        hull_keys = hull(hull_keys, range);
        KeyRange& common = common_[(n * rows_ + i) / kStrip];
        common = i % kStrip == 0 ? range : intersect(common, range);
        all_ = hull(all_, range);
      }
    }
  }

  int64_t sweeps() const { return sweeps_; }
  KeyRange range(int64_t sweep, int64_t row) const { return key_ranges_[sweep * rows_ + row]; }
  // The hull of the ranges of a strip's queries.
  KeyRange hull_keys(int64_t sweep, int64_t strip) const {
    return hulls_[sweep * rows_ / kStrip + strip];
  }
  // The hull of the ranges of all queries.
  KeyRange all() const { return all_; }

  // The hull of a strip, clipped to `keys`, over the sweeps of some rotations.
  KeyRange hull_keys_in(int64_t strip, KeyRange keys,
                        RotationsSeen rotations = kAllRotations) const {
    KeyRange all;
    for (int64_t n = 0; n < sweeps_; ++n)
      if (is_in(n, rotations)) all = hull(all, intersect(hull_keys(n, strip), keys));
    return all;
  }

  // Whether some sweep shows all of `keys` to every query of a strip.
  bool sees_all(int64_t strip, KeyRange keys) const {
    for (int64_t n = 0; n < sweeps_; ++n) {
      const KeyRange& common = common_[n * rows_ / kStrip + strip];
      if (common.first <= keys.first && keys.last <= common.last) return true;
    }
    return false;
  }

  RotationsSeen rotations_seen(int64_t first_strip, int64_t last_strip, KeyRange keys) const {
    RotationsSeen seen;
    bool any = false;
    for (int64_t n = 0; n < sweeps_; ++n)
      for (int64_t strip = first_strip; strip < last_strip; ++strip) {
        if (empty(intersect(hull_keys(n, strip), keys))) continue;
        const size_t rotation = problem_->rotations.of_sweep[static_cast<size_t>(n)];
        seen.several = seen.several || (any && rotation != seen.rotation);
        seen.rotation = rotation;
        any = true;
      }
    return seen;
  }

  // Calls f(range) for each range within `keys` that `row` sees in the sweeps of some rotations.
  template <class F>
  void each_range(int64_t row, KeyRange keys, RotationsSeen rotations, F&& f) const {
    for (int64_t n = 0; n < sweeps_; ++n) {
      if (!is_in(n, rotations)) continue;
      const KeyRange seen = intersect(range(n, row), keys);
      if (!empty(seen)) f(seen);
    }
  }

  // Writes `value` for each of `keys` that `row` does not see; line[0] belongs to keys.first.
  void fill_unseen(int64_t row, KeyRange keys, float value, float* line) const {
    for (int64_t at = keys.first; at < keys.last;) {
      KeyRange next = {keys.last, keys.last};
      each_range(row, {at, keys.last}, kAllRotations, [&](KeyRange seen) {
        if (seen.first < next.first) next = seen;
      });
      std::fill(line + (at - keys.first), line + (next.first - keys.first), value);
      at = next.last;
    }
  }

 private:
  bool is_in(int64_t sweep, RotationsSeen rotations) const {
    return rotations.has(problem_->rotations.of_sweep[static_cast<size_t>(sweep)]);
  }

  const Problem* problem_;
  int64_t sweeps_, rows_;
  KeyRange* key_ranges_;
  KeyRange* hulls_;
  KeyRange* common_;  // [sweeps][strips]: the keys that all queries of a strip see
  KeyRange all_;
};

}  // namespace sextant::cpu
