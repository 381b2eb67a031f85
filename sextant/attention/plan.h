// The plan of a call of attention: the positions of rows, the keys that each query sees, and the
// rotations of rows. It is in host memory and holds no data of a model, so one plan serves every
// call with the same layout, and all layers that have the same sweeps and row maps. The caller owns
// the arrays that it points to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/position/frame.h"
#include "sextant/position/spectrum.h"

namespace sextant {

// The rotation of the rows of one side (queries or keys). Null: they are not rotated.
struct SideRotation {
  const Rotation* rotation = nullptr;
  // The rotary position of a row is
  // rotary_positions[b * batch_stride + axis * axis_stride + row * row_stride]. Null: the position
  // that its frame gives it, on all axes.
  const int64_t* rotary_positions = nullptr;
  int64_t batch_stride = 0, axis_stride = 0, row_stride = 1;
  // Added to the phase of each pair, [pairs] or empty. Piecewise methods hold rows at a fixed
  // phase.
  std::span<const Turns> offset = {};
  // 0: all frames have one rotation. 1: rotation[n] rotates the rows of frame n, so each sequence,
  // or each query, may have a spectrum of its own (dynamic stretches).
  int64_t frame_stride = 0;
};

// Whether all rows have the same rotations.
inline bool same_side(const SideRotation& a, const SideRotation& b) {
  return a.rotation == b.rotation && a.rotary_positions == b.rotary_positions &&
         a.batch_stride == b.batch_stride && a.axis_stride == b.axis_stride &&
         a.row_stride == b.row_stride && a.offset.data() == b.offset.data() &&
         a.offset.size() == b.offset.size() && a.frame_stride == b.frame_stride;
}

// One key range for each query, and one rotation. The ranges of a query in different sweeps are
// disjoint and share one softmax.
struct Sweep {
  SideRotation query = {}, key = {};
  // The key rows that a query sees, clipped to its frame: key_ranges[b * batch_stride + query row].
  const KeyRange* key_ranges = nullptr;
  int64_t batch_stride = 0;  // 0: the same for every batch entry
};

// Positions and rows are at most this far from 0, so that their differences do not overflow.
inline constexpr int64_t kFarthestPosition = int64_t{1} << 52;

// The key rows, clipped to the frame, that `query` (a row of q) sees in this sweep.
inline KeyRange visible_keys(const Sweep& sweep, const Frame& frame, int64_t b, int64_t query) {
  const KeyRange& range = sweep.key_ranges[b * sweep.batch_stride + query];
  return {std::max(range.first, frame.key_row), std::min(range.last, frame.key_row + frame.keys)};
}

// The page table of a cache. k and v are then [pages, key heads, P, columns], and row j of batch
// entry b is row j mod P of page at[b * batch_stride + floor(j / P)]. A number n below 0 is page
// -1 - n of Operands::k_int8 and v_int8. Entries may share pages. P and the key_row of every frame
// are multiples of kPageUnit, so no vector of rows crosses a page boundary. Only the forward pass
// reads pages.
inline constexpr int64_t kPageUnit = 16;
// A query's sums have one order, and its result the same bits, if the first key row of its frame
// moves by multiples of this: rows that it does not see need no place in the frame.
inline constexpr int64_t kFrameUnit = 256;
struct Pages {
  const int64_t* at = nullptr;  // ceil(rows / P) page numbers for each entry
  int64_t batch_stride = 0;     // 0: the same for every batch entry
  int64_t rows = 0;             // of an entry, as frames, ranges, rotary positions and mask count

  explicit operator bool() const { return at != nullptr; }
};

// The lowest and the highest number in a page table; 0 and -1: there is none.
struct PageRange {
  int64_t first = 0, last = -1;
};

// The location of a key row in k and v: an entry (a page, or a batch entry) and a row in it.
struct StoredRow {
  int64_t batch = 0, row = 0;

  // Whether the row is in a page of integers, and that page.
  bool is_int8() const { return batch < 0; }
  int64_t int8_page() const { return -1 - batch; }
};

// The table row of each diagonal, for each table of the operands. Empty: row = diagonal. Clipping,
// bucketing and direction are expressed by these maps alone.
struct RowMaps {
  std::span<const int32_t> weight = {}, bias = {}, on_query = {}, on_key = {}, on_value = {};
};

// An axis of positions beside those of the frames: one of a grid's, or of boxes on a page. On it,
// query row i of batch entry b has position query_positions[b * query_batch_stride + i], and keys
// likewise. The distance is the query's position minus the key's.
struct PositionAxis {
  const int64_t *query_positions = nullptr, *key_positions = nullptr;
  int64_t query_batch_stride = 0, key_batch_stride = 0;  // 0: the same for every batch entry
  // Must cover the distance of each query to each key of its frame.
  Diagonals distances = {};
  // The row of Operands::axis_bias and axis_on_query for each of these distances, or -1: none.
  // Empty: the axis has no row of that table.
  std::span<const int32_t> bias = {}, on_query = {};
};
// Positions of the keys of an entry are at most this far apart on an axis with rows of
// axis_on_query: kernels keep a number for each of them and each query that is in progress.
inline constexpr int64_t kMostAxisPositions = int64_t{1} << 12;
// An axis has at most so many distances.
inline constexpr int64_t kMostAxisDistances = int64_t{1} << 24;
inline constexpr int64_t kMostAxes = 8;

// The least and the greatest of some positions.
struct PositionRange {
  int64_t first = kFarthestPosition, last = -kFarthestPosition;

  bool empty() const { return first > last; }
  int64_t width() const { return last - first; }
  void include(const int64_t* positions, int64_t count) {
    for (int64_t n = 0; n < count; ++n) {
      first = std::min(first, positions[n]);
      last = std::max(last, positions[n]);
    }
  }
  void include(const PositionRange& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
};

// Calls f(b) for the batch entries of a frame.
template <class F>
void each_entry(const Frame& frame, int64_t batch, F&& f) {
  const bool every = frame.batch == kEveryBatch;
  for (int64_t b = every ? 0 : frame.batch; b < (every ? batch : frame.batch + 1); ++b) f(b);
}

struct Plan {
  // At least one of each where there are queries and keys. A query row is in at most one frame; in
  // none, it sees no key.
  std::vector<Frame> frames = {};
  std::vector<Sweep> sweeps = {};
  Diagonals diagonals = {};  // must cover every visible distance if there is any table
  RowMaps row_at = {};
  std::vector<PositionAxis> axes = {};
  Pages pages = {};  // null: row j of an entry is row j of k and v
};

// The sizes of the calls that a plan serves.
struct PlanShape {
  int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0;
  int64_t page_rows = 0;                   // of the pages of k and v; 0: there are no pages
  int64_t columns = 0, value_columns = 0;  // D, Dv
  bool key_table = false;                  // there is a table B (on_key)

  bool operator==(const PlanShape&) const = default;
};

// A backend's own part of a plan.
class SEXTANT_API BackendPlan {
 public:
  virtual ~BackendPlan() = default;
};

}  // namespace sextant
