// Which keys some consecutive queries of a frame see, counted from the frame's first key.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/cpu/problem.h"
#include "sextant/attention/cpu/sizes.h"

namespace sextant::cpu {

inline KeyRange meet(KeyRange a, KeyRange b) {
  return {std::max(a.first, b.first), std::min(a.last, b.last)};
}
inline bool empty(KeyRange run) { return run.first >= run.last; }
// The shortest run that holds both.
inline KeyRange span(KeyRange a, KeyRange b) {
  if (empty(a)) return b;
  if (empty(b)) return a;
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}

// Which ways some strips see some keys in: one of them, or several and maybe every one.
struct WaysSeen {
  size_t way = 0;
  bool several = false;

  bool has(size_t other) const { return several || other == way; }
};
inline constexpr WaysSeen kEveryWay = {0, true};

class Visibility {
 public:
  // Room for `rows` queries.
  Visibility(const Problem& problem, int64_t rows, Arena& arena)
      : problem_(&problem),
        sweeps_(static_cast<int64_t>(problem.score.sweeps.size())),
        rows_(round_up(rows, kStrip)),
        runs_(arena.take<KeyRange>(sweeps_ * rows_)),
        bands_(arena.take<KeyRange>(sweeps_ * rows_ / kStrip)),
        cores_(arena.take<KeyRange>(sweeps_ * rows_ / kStrip)) {}

  // Looks at queries [first, first + rows) of a block.
  void look(const BatchFrame& block, int64_t first, int64_t rows) {
    all_ = {};
    for (int64_t n = 0; n < sweeps_; ++n) {
      const Sweep& sweep = problem_->score.sweeps[static_cast<size_t>(n)];
      const Frame& frame = block.frame;
      std::fill_n(bands_ + n * rows_ / kStrip, rows_ / kStrip, KeyRange{});
      for (int64_t i = 0; i < rows; ++i) {
        KeyRange run = visible_keys(sweep, frame, frame.batch, frame.query_row + first + i);
        run =
            empty(run) ? KeyRange{} : KeyRange{run.first - frame.key_row, run.last - frame.key_row};
        runs_[n * rows_ + i] = run;
        KeyRange& band = bands_[(n * rows_ + i) / kStrip];
        band = span(band, run);
        KeyRange& core = cores_[(n * rows_ + i) / kStrip];
        core = i % kStrip == 0 ? run : meet(core, run);
        all_ = span(all_, run);
      }
    }
  }

  int64_t sweeps() const { return sweeps_; }
  KeyRange run(int64_t sweep, int64_t row) const { return runs_[sweep * rows_ + row]; }
  // Holds the runs of a strip's queries.
  KeyRange band(int64_t sweep, int64_t strip) const {
    return bands_[sweep * rows_ / kStrip + strip];
  }
  // Holds the runs of all queries.
  KeyRange all() const { return all_; }

  // Of a strip, clipped to `keys`, in the sweeps of some ways.
  KeyRange band_in(int64_t strip, KeyRange keys, WaysSeen ways = kEveryWay) const {
    KeyRange all;
    for (int64_t n = 0; n < sweeps_; ++n)
      if (is_of(n, ways)) all = span(all, meet(band(n, strip), keys));
    return all;
  }

  // Whether some sweep shows all of `keys` to every query of a strip.
  bool sees_all(int64_t strip, KeyRange keys) const {
    for (int64_t n = 0; n < sweeps_; ++n) {
      const KeyRange& core = cores_[n * rows_ / kStrip + strip];
      if (core.first <= keys.first && keys.last <= core.last) return true;
    }
    return false;
  }

  WaysSeen ways_seen(int64_t first_strip, int64_t last_strip, KeyRange keys) const {
    WaysSeen seen;
    bool any = false;
    for (int64_t n = 0; n < sweeps_; ++n)
      for (int64_t strip = first_strip; strip < last_strip; ++strip) {
        if (empty(meet(band(n, strip), keys))) continue;
        const size_t way = problem_->ways.of_sweep[static_cast<size_t>(n)];
        seen.several = seen.several || (any && way != seen.way);
        seen.way = way;
        any = true;
      }
    return seen;
  }

  // Calls f(run) for each run of keys within `keys` that `row` sees in the sweeps of some ways.
  template <class F>
  void each_run(int64_t row, KeyRange keys, WaysSeen ways, F&& f) const {
    for (int64_t n = 0; n < sweeps_; ++n) {
      if (!is_of(n, ways)) continue;
      const KeyRange seen = meet(run(n, row), keys);
      if (!empty(seen)) f(seen);
    }
  }

  // Sets to `value` what `row` does not see of `keys`; line[0] belongs to keys.first.
  void fill_unseen(int64_t row, KeyRange keys, float value, float* line) const {
    for (int64_t at = keys.first; at < keys.last;) {
      KeyRange next = {keys.last, keys.last};
      each_run(row, {at, keys.last}, kEveryWay, [&](KeyRange seen) {
        if (seen.first < next.first) next = seen;
      });
      std::fill(line + (at - keys.first), line + (next.first - keys.first), value);
      at = next.last;
    }
  }

 private:
  bool is_of(int64_t sweep, WaysSeen ways) const {
    return ways.has(problem_->ways.of_sweep[static_cast<size_t>(sweep)]);
  }

  const Problem* problem_;
  int64_t sweeps_, rows_;
  KeyRange* runs_;
  KeyRange* bands_;
  KeyRange* cores_;  // what all queries of a strip see, by strip as bands_
  KeyRange all_;
};

}  // namespace sextant::cpu
