// The preparation of a call that forward and backward share: its frames, the phases of their rows,
// and the tables in the layouts that tiles read. All of it is O(rows * columns).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/cpu/pass_plan.h"
#include "sextant/attention/cpu/phases.h"
#include "sextant/attention/cpu/row_map.h"
#include "sextant/attention/cpu/sizes.h"
#include "sextant/attention/host_score.h"
#include "sextant/attention/key_bias.h"
#include "sextant/base/context.h"

namespace sextant::cpu {

// Numbers of each head, or of all heads together.
struct PackedNumbers {
  int64_t heads = 0;  // 0: absent
  int64_t stride = 0;
  float* data = nullptr;

  explicit operator bool() const { return heads > 0; }
  int64_t size() const { return stride; }  // of a head
  int64_t head_index(int64_t h) const { return heads == 1 ? 0 : h; }
};

// A table of one column, by diagonal: w or b.
struct PackedBias : PackedNumbers {
  // The values of a head by diagonal, readable from -RowMap::kMargin on.
  const float* head(int64_t h) const { return data + head_index(h) * stride + RowMap::kMargin; }
};

// The pass that a call makes. kForwardOfBfloat16 multiplies values that are rounded to bfloat16.
// The passes of terms multiply float32 as sums of three bfloat16 terms on machines with AMX;
// elsewhere they are as kForward and kBackward.
enum class Pass { kForward, kForwardOfBfloat16, kForwardOfTerms, kBackward, kBackwardOfTerms };

// A, B or C. Products (q . A) read it in panels, weighted sums of its rows (weights . C) row-major;
// rows and columns are padded with zeros to multiples of kLanes. The map of B counts diagonals
// backwards, since its tiles have keys for rows: there the diagonal falls from one query to the
// next. Rows of A and B may be stored from last to first (map.rows_reversed()).
struct PackedTable {
  int64_t heads = 0;  // 0: absent
  int64_t count = 0, columns = 0;
  int64_t count16 = 0, columns16 = 0;
  float factor = 1;  // of its rows in `panels` and `rows`
  RowMap map;
  float *panels = nullptr, *rows = nullptr;  // no rows if the pass does not read them
  uint8_t* finite = nullptr;  // [heads][count16 / kLanes]: whether a panel has no infinity or NaN

  explicit operator bool() const { return heads > 0; }
  int64_t size() const { return count16 * columns16; }  // of a head
  int64_t head_index(int64_t h) const { return heads == 1 ? 0 : h; }
  // [rows / kLanes][columns16][kLanes]; row: a multiple of kLanes
  const float* panel(int64_t h, int64_t row) const {
    return panels + (head_index(h) * count16 + row) * columns16;
  }
  const float* row(int64_t h, int64_t row) const {
    return rows + (head_index(h) * count16 + row) * columns16;
  }
  bool all_finite(int64_t h, KeyRange some) const {
    const auto at = [&](int64_t panel) {
      return finite + head_index(h) * count16 / kLanes + panel;
    };
    return std::all_of(at(some.first / kLanes), at(round_up(some.last, kLanes) / kLanes),
                       [](uint8_t is) { return is != 0; });
  }
};

// The keys of an axis of positions, and its values by distance, so that the bias of query i and
// key j is from_query(h, b, i)[row of key j]: rows of keys are their positions, counted from the
// least one.
struct PackedAxis {
  const PositionAxis* axis = nullptr;
  int64_t first_key = 0, keys = 0;  // the least position of a key, and how many there are up to
                                    // the greatest
  int64_t last_query = 0;           // the greatest position of a query
  const RowMap* maps = nullptr;     // of key rows to positions, [batch or 1]
  int64_t column = 0;               // of the first key's position in a row of products with A
  // By distance, from that of last_query and first_key on; 0 where there is no row.
  int64_t values = 0;  // their number, margins included
  int64_t at = 0;      // their place in each head of AxisBias

  const RowMap& map(int64_t b) const { return maps[axis->key_batch_stride == 0 ? 0 : b]; }
  // How far a query's values begin behind the first.
  int64_t offset(int64_t b, int64_t query) const {
    return last_query - axis->query_positions[b * axis->query_batch_stride + query];
  }
  // Calls f(a row of the table, the place of its value in a head of AxisBias) for each distance
  // that has a row.
  template <class F>
  void each_value(F&& f) const {
    const std::span<const int32_t> row_at = axis->bias;
    const int64_t first = axis->distances.index(last_query - first_key);
    const int64_t to = std::min<int64_t>(values, std::ssize(row_at) - first);
    for (int64_t n = std::max<int64_t>(0, -first); n < to; ++n)
      if (const int32_t row = row_at[static_cast<size_t>(first + n)]; row >= 0) f(row, at + n);
  }
  // The index in axis->distances of a query and the first key.
  int64_t first_distance(int64_t b, int64_t query) const {
    return axis->distances.index(axis->query_positions[b * axis->query_batch_stride + query] -
                                 first_key);
  }
};

// b of all axes, by distance.
struct AxisBias : PackedNumbers {
  const float* head(int64_t h) const { return data + head_index(h) * stride; }
};

struct Problem {
  const HostScore<float>& score;
  float scale = 1;
  int64_t group = 1;               // query heads that share a key head
  int64_t depth = 0, depth16 = 0;  // columns of q and k
  int64_t width = 0, width16 = 0;  // columns of v
  int64_t terms = 0;  // if not 0: of numbers in so many parts (amx.h), where there are many queries
  bool pairs = false;  // q k and p v are products of pairs (pairs-inl.h)
  bool dots = false;   // which are one instruction
  int64_t unit = 0;    // keys that are scored at once; a power of two, at least kLanes
  const std::vector<BatchFrame>& blocks;       // as PassPlan has them
  const std::vector<size_t>& blocks_of_batch;  // [batch + 1]
  const Rotations& rotations;
  const Phases& phases;
  PackedBias weight, bias;
  PackedTable on_query, on_key, on_value;
  std::span<PackedAxis> axes;
  int64_t axis_columns = 0;  // of a query's products with A of all axes, by position of a key
  AxisBias axis_bias;
  PackedTable axis_on_query;  // its rows in the order of the operand
  int64_t table_query16 = 0;  // columns of r; 0: there is none
  KeyBiasOrigins origins;

  // The columns of rows that meet A, as they are packed.
  int64_t table_columns16() const { return table_query16 > 0 ? table_query16 : depth16; }
  // Whether q without rotation meets A.
  bool reads_plain_queries() const { return table_query16 == 0 && (on_query || axis_on_query); }
  bool has_axis_terms() const { return axis_bias || axis_on_query; }

  // unit: that of `plan`, or, without growth, any other.
  Problem(const HostScore<float>& score, Pass pass, const PassPlan& plan, int64_t unit,
          Workspace& memory, const Executor& executor);
  Problem(const Problem&) = delete;
};

// Whether products of pairs are one instruction on this machine (pairs-inl.h). Defined in
// prepare.cc, which is compiled for each target.
bool has_dots_of_pairs();

// Fills the panels of a table and, if `rows`, its rows. Defined in prepare.cc, which uses SIMD.
void pack_vectors(const Table<float>& table, float factor, bool rows, PackedTable& vectors,
                  Workspace& memory, const Executor& executor);

}  // namespace sextant::cpu
