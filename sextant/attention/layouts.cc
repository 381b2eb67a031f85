// A layout is a list of frames and one window: a query sees the keys of its frame whose distances
// lie in the window. The named layouts choose both.
#include "sextant/attention/layouts.h"

#include <algorithm>
#include <array>
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

AttentionWindow causal_window(int64_t window) {
  at_least("window", window, 0);
  return {.left = window == 0 ? kEveryDistance : window - 1, .right = 0};
}

std::vector<Frame> frames_of(std::span<const int64_t> lengths) {
  std::vector<Frame> frames;
  packed_frames(lengths, frames);
  return frames;
}

// Checks frames. Returns the number of batch entries to which they belong; 0: all belong to every
// one.
int64_t checked_entries(std::span<const Frame> frames) {
  int64_t entries = 0, every = 0;
  for (const Frame& f : frames) {
    at_least("frames.batch", f.batch, kEveryBatch);
    at_least("frames.query_row", f.query_row, 0);
    at_least("frames.queries", f.queries, 0);
    at_least("frames.key_row", f.key_row, 0);
    at_least("frames.keys", f.keys, 0);
    every += f.batch == kEveryBatch ? 1 : 0;
    entries = std::max(entries, f.batch + 1);
  }
  if (entries > 0 && every > 0)
    refuse("frames.batch", "at least 0, as others have it", kEveryBatch);
  return entries;
}

}  // namespace

OwnedPlan::OwnedPlan(std::vector<Frame> frames, std::vector<KeyRange> key_ranges,
                     const Diagonals& diagonals, std::optional<Rotation> rotation)
    : key_ranges_(std::move(key_ranges)) {
  const int64_t entries = checked_entries(frames);
  const int64_t queries = std::ssize(key_ranges_) / std::max<int64_t>(entries, 1);
  for (const Frame& f : frames) at_least("key_ranges.size()", queries, f.query_row + f.queries);
  Sweep sweep = {.key_ranges = key_ranges_.data(), .batch_stride = entries > 0 ? queries : 0};
  if (rotation) {
    rotation_ = std::make_unique<const Rotation>(std::move(*rotation));
    sweep.query = sweep.key = {.rotation = rotation_.get()};
  }
  plan_ = {.frames = std::move(frames), .sweeps = {sweep}, .diagonals = diagonals};
}

void packed_frames(std::span<const int64_t> lengths, std::vector<Frame>& frames) {
  frames.clear();
  int64_t row = 0;
  for (const int64_t length : lengths) {
    at_least("lengths", length, 0);
    frames.push_back({.query_row = row, .queries = length, .key_row = row, .keys = length});
    row += length;
  }
}

int64_t key_ranges(std::span<const Frame> frames, const AttentionWindow& window,
                   std::vector<KeyRange>& ranges) {
  const int64_t entries = checked_entries(frames);
  int64_t queries = 0;
  for (const Frame& f : frames) queries = std::max(queries, f.query_row + f.queries);
  ranges.assign(static_cast<size_t>(queries * std::max<int64_t>(entries, 1)), KeyRange{});
  for (const Frame& f : frames) {
    KeyRange* const own = ranges.data() + std::max<int64_t>(f.batch, 0) * queries;
    for (int64_t i = f.query_row; i < f.query_row + f.queries; ++i) {
      const int64_t at = f.key_row + f.distance(i, f.key_row);  // the key at the query's position
      own[i] = {std::max(f.key_row, at - window.left),
                std::min(f.key_row + f.keys, at + window.right + 1)};
    }
  }
  return entries > 0 ? queries : 0;
}

Diagonals seen_distances(std::span<const Frame> frames, const AttentionWindow& window) {
  at_least("left", window.left, 0);
  at_least("right", window.right, 0);
  int64_t farthest = -kEveryDistance, nearest = kEveryDistance;
  for (const Frame& f : frames) {
    if (f.queries == 0 || f.keys == 0) continue;
    const int64_t low = std::max(f.distance(f.query_row, f.key_row + f.keys - 1), -window.right);
    const int64_t high = std::min(f.distance(f.query_row + f.queries - 1, f.key_row), window.left);
    if (low > high) continue;
    farthest = std::max(farthest, high);
    nearest = std::min(nearest, low);
  }
  const bool causal = window.right == 0;  // then tables end with distance 0
  if (farthest < nearest) return {.farthest = causal ? -1 : 0};
  return {.farthest = farthest, .count = farthest - (causal ? 0 : nearest) + 1};
}

OwnedPlan within(std::vector<Frame> frames, const AttentionWindow& window,
                 std::optional<Rotation> rotation) {
  const Diagonals diagonals = seen_distances(frames, window);
  std::vector<KeyRange> ranges;
  key_ranges(frames, window, ranges);
  return {std::move(frames), std::move(ranges), diagonals, std::move(rotation)};
}

OwnedPlan causal(const SequenceRows& rows, std::optional<Rotation> rotation) {
  return within({frame_of(rows)}, causal_window(0), std::move(rotation));
}

OwnedPlan windowed(const SequenceRows& rows, int64_t window, std::optional<Rotation> rotation) {
  at_least("window", window, 1);
  return within({frame_of(rows)}, causal_window(window), std::move(rotation));
}

OwnedPlan bidirectional(const SequenceRows& rows, std::optional<Rotation> rotation) {
  return within({frame_of(rows)}, {}, std::move(rotation));
}

OwnedPlan packed(std::span<const int64_t> lengths, std::optional<Rotation> rotation,
                 int64_t window) {
  return within(frames_of(lengths), causal_window(window), std::move(rotation));
}

Diagonals causal_diagonals(const SequenceRows& rows, int64_t window) {
  return seen_distances(std::array{frame_of(rows)}, causal_window(window));
}

Diagonals bidirectional_diagonals(const SequenceRows& rows) {
  return seen_distances(std::array{frame_of(rows)}, {});
}

Diagonals packed_diagonals(std::span<const int64_t> lengths, int64_t window) {
  return seen_distances(frames_of(lengths), causal_window(window));
}

}  // namespace sextant
