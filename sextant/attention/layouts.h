// Plans of the common layouts, with the arrays that they point to:
//
//   const OwnedPlan layout = causal({.queries = 512, .keys = 512}, rope);
//   const Score<float> score = {{.q = q, .k = k, .v = v}, layout.plan()};
//
// All of these plans have one sweep and a diagonal for each distance that a query sees. They serve
// any number of batch entries, unless their frames belong to some.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sextant/attention/plan.h"
#include "sextant/base/export.h"

namespace sextant {

// A plan and its arrays. It must outlive the scores and prepared plans that are made from it.
class SEXTANT_API OwnedPlan {
 public:
  // key_ranges: [queries], the keys that each query sees, clipped to its frame; [batch, queries] if
  // frames belong to batch entries, as they all do or none. Rotary positions are the positions of
  // the frames.
  OwnedPlan(std::vector<Frame> frames, std::vector<KeyRange> key_ranges, const Diagonals& diagonals,
            std::optional<Rotation> rotation = {});
  OwnedPlan(const OwnedPlan&) = delete;
  OwnedPlan(OwnedPlan&&) = default;

  const Plan& plan() const { return plan_; }
  const Diagonals& diagonals() const { return plan_.diagonals; }

 private:
  std::vector<KeyRange> key_ranges_;
  std::unique_ptr<const Rotation> rotation_;
  Plan plan_;
};

// The keys that a query sees, by distance: `left` keys before its position, the one at its
// position, and `right` keys after it.
inline constexpr int64_t kEveryDistance = int64_t{1} << 60;
struct AttentionWindow {
  int64_t left = kEveryDistance, right = kEveryDistance;
};

// The plan in which queries see the keys of their frame within a window. Padded batches, packed
// sequences and limited context are such frames. Throws Error as all functions here do.
SEXTANT_API OwnedPlan within(std::vector<Frame> frames, const AttentionWindow& window,
                             std::optional<Rotation> rotation = {});
// Its parts. packed_frames() writes the frames of sequences that follow each other, each from
// position 0 on, and key_ranges() writes the ranges, in the memory that they have, and returns
// their batch stride: 0, or the number of queries if frames belong to batch entries.
SEXTANT_API void packed_frames(std::span<const int64_t> lengths, std::vector<Frame>& frames);
SEXTANT_API int64_t key_ranges(std::span<const Frame> frames, const AttentionWindow& window,
                               std::vector<KeyRange>& ranges);
SEXTANT_API Diagonals seen_distances(std::span<const Frame> frames, const AttentionWindow& window);

// The rows of one sequence. Key row n has position first_key + n. Query row i has position
// first_query + i; if that is absent, the queries are the last rows of the keys.
struct SequenceRows {
  int64_t queries = 0, keys = 0;
  int64_t first_key = 0;
  std::optional<int64_t> first_query = {};
};

// All of these throw Error that names the field: for negative sizes, for a window below 1, and if
// there are more queries than keys and no first_query.

// A query sees the keys at its position and before.
SEXTANT_API OwnedPlan causal(const SequenceRows& rows, std::optional<Rotation> rotation = {});
// A query sees `window` keys: the one at its position and those before.
SEXTANT_API OwnedPlan windowed(const SequenceRows& rows, int64_t window,
                               std::optional<Rotation> rotation = {});
// A query sees all keys.
SEXTANT_API OwnedPlan bidirectional(const SequenceRows& rows,
                                    std::optional<Rotation> rotation = {});
// Causal sequences of these lengths, one after the other in the rows of q, k and v, each from
// position 0 on. window: as above; 0: none.
SEXTANT_API OwnedPlan packed(std::span<const int64_t> lengths,
                             std::optional<Rotation> rotation = {}, int64_t window = 0);

// The diagonals of these layouts, computed without the plans. Errors are the same.

// window: as in windowed(); 0: causal().
SEXTANT_API Diagonals causal_diagonals(const SequenceRows& rows, int64_t window = 0);
SEXTANT_API Diagonals bidirectional_diagonals(const SequenceRows& rows);
SEXTANT_API Diagonals packed_diagonals(std::span<const int64_t> lengths, int64_t window = 0);

// f(head, distance) for each head and diagonal, [heads, diagonals]: a bias or weight by distance.
template <class F>
std::vector<float> by_distance(const Diagonals& diagonals, int64_t heads, F&& f) {
  std::vector<float> table;
  table.reserve(static_cast<size_t>(heads * diagonals.count));
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t n = 0; n < diagonals.count; ++n)
      table.push_back(static_cast<float>(f(head, diagonals.distance(n))));
  return table;
}

}  // namespace sextant
