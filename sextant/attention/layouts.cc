#include "sextant/attention/layouts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sextant/base/error.h"

namespace sextant {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& expected, int64_t got) {
  fail("layout: " + field + ": expected " + expected + ", but got " + std::to_string(got));
}

void at_least(const std::string& field, int64_t got, int64_t least) {
  if (got < least) refuse(field, "at least " + std::to_string(least), got);
}

Frame frame_of(const SequenceRows& rows) {
  at_least("queries", rows.queries, 0);
  at_least("keys", rows.keys, 0);
  if (!rows.first_query && rows.queries > rows.keys)
    refuse("queries", "at most the " + std::to_string(rows.keys) + " keys, or a first_query",
           rows.queries);
  return {.queries = rows.queries,
          .query_position = rows.first_query.value_or(rows.first_key + rows.keys - rows.queries),
          .keys = rows.keys,
          .key_position = rows.first_key};
}

// The distances from `nearest` to `farthest`.
Diagonals distances(int64_t nearest, int64_t farthest) {
  return {.farthest = farthest, .count = std::max<int64_t>(farthest - nearest + 1, 0)};
}

// The largest distance that a query of the frame sees, or -1 if none sees a key.
int64_t farthest_of(const Frame& f, int64_t window) {
  if (f.queries == 0 || f.keys == 0) return -1;
  // The numbers of the keys at the positions of the first and of the last query that sees one.
  const int64_t first = f.distance(f.query_row, f.key_row);
  int64_t last = first + f.queries - 1;
  if (window > 0 && last - f.keys + 1 > window - 1) last = f.keys + window - 2;
  if (last < std::max<int64_t>(first, 0)) return -1;
  return window > 0 ? std::min(last, window - 1) : last;
}

// Appends the ranges of a frame's queries, of which each sees itself and the keys before it, at
// most `window` keys in all (0: no limit).
void add_causal_ranges(const Frame& f, int64_t window, std::vector<KeyRange>& ranges) {
  for (int64_t i = f.query_row; i < f.query_row + f.queries; ++i) {
    const int64_t own = f.key_row + f.distance(i, f.key_row);  // the key at the query's position
    const int64_t first = window == 0 ? f.key_row : std::max(f.key_row, own - window + 1);
    ranges.push_back({first, std::min(own + 1, f.key_row + f.keys)});
  }
}

OwnedPlan causal_within(const SequenceRows& rows, int64_t window,
                        std::optional<Rotation> rotation) {
  const Frame frame = frame_of(rows);
  std::vector<KeyRange> ranges;
  add_causal_ranges(frame, window, ranges);
  return {
      {frame}, std::move(ranges), distances(0, farthest_of(frame, window)), std::move(rotation)};
}

}  // namespace

OwnedPlan::OwnedPlan(std::vector<Frame> frames, std::vector<KeyRange> key_ranges,
                     const Diagonals& diagonals, std::optional<Rotation> rotation)
    : key_ranges_(std::move(key_ranges)) {
  for (const Frame& f : frames) {
    if (f.batch != kEveryBatch) refuse("frames.batch", "kEveryBatch", f.batch);
    at_least("frames.query_row", f.query_row, 0);
    at_least("frames.queries", f.queries, 0);
    at_least("frames.key_row", f.key_row, 0);
    at_least("frames.keys", f.keys, 0);
    at_least("key_ranges.size()", static_cast<int64_t>(key_ranges_.size()),
             f.query_row + f.queries);
  }
  Sweep sweep = {.key_ranges = key_ranges_.data()};
  if (rotation) {
    rotation_ = std::make_unique<const Rotation>(std::move(*rotation));
    sweep.query = sweep.key = {.rotation = rotation_.get()};
  }
  plan_ = {.frames = std::move(frames), .sweeps = {sweep}, .diagonals = diagonals};
}

OwnedPlan causal(const SequenceRows& rows, std::optional<Rotation> rotation) {
  return causal_within(rows, 0, std::move(rotation));
}

OwnedPlan windowed(const SequenceRows& rows, int64_t window, std::optional<Rotation> rotation) {
  at_least("window", window, 1);
  return causal_within(rows, window, std::move(rotation));
}

OwnedPlan bidirectional(const SequenceRows& rows, std::optional<Rotation> rotation) {
  const Frame frame = frame_of(rows);
  std::vector<KeyRange> ranges(static_cast<size_t>(rows.queries), {0, rows.keys});
  return {{frame}, std::move(ranges), bidirectional_diagonals(rows), std::move(rotation)};
}

OwnedPlan packed(std::span<const int64_t> lengths, std::optional<Rotation> rotation,
                 int64_t window) {
  const Diagonals diagonals = packed_diagonals(lengths, window);
  std::vector<Frame> frames;
  std::vector<KeyRange> ranges;
  int64_t row = 0;
  for (const int64_t length : lengths) {
    frames.push_back({.query_row = row, .queries = length, .key_row = row, .keys = length});
    add_causal_ranges(frames.back(), window, ranges);
    row += length;
  }
  return {std::move(frames), std::move(ranges), diagonals, std::move(rotation)};
}

Diagonals causal_diagonals(const SequenceRows& rows, int64_t window) {
  at_least("window", window, 0);
  return distances(0, farthest_of(frame_of(rows), window));
}

Diagonals bidirectional_diagonals(const SequenceRows& rows) {
  const Frame frame = frame_of(rows);
  if (rows.queries == 0 || rows.keys == 0) return {};
  return distances(frame.distance(0, rows.keys - 1), frame.distance(rows.queries - 1, 0));
}

Diagonals packed_diagonals(std::span<const int64_t> lengths, int64_t window) {
  at_least("window", window, 0);
  int64_t farthest = -1;
  for (const int64_t length : lengths) {
    at_least("lengths", length, 0);
    farthest = std::max(farthest, farthest_of({.queries = length, .keys = length}, window));
  }
  return distances(0, farthest);
}

}  // namespace sextant
