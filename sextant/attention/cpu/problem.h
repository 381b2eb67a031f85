// The preparation of a call that forward and backward share: its frames, the phases of their rows,
// and the tables in the layouts that tiles read. All of it is O(rows * columns).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/cpu/phases.h"
#include "sextant/attention/cpu/row_map.h"
#include "sextant/attention/cpu/sizes.h"
#include "sextant/attention/key_bias.h"
#include "sextant/attention/score.h"
#include "sextant/base/executor.h"

namespace sextant::cpu {

// A frame of one batch entry. Queries and keys are counted from its first ones.
struct BatchFrame {
  Frame frame;           // batch is a batch entry
  int64_t phases = 0;    // index of its Phases
  int64_t diagonal = 0;  // the diagonal of its first query and first key
};

// A table of one column, by diagonal: w or b.
struct PackedBias {
  int64_t heads = 0;  // 0: absent
  int64_t stride = 0;
  AlignedFloats data;

  explicit operator bool() const { return heads > 0; }
  int64_t head_index(int64_t h) const { return heads == 1 ? 0 : h; }
  // The values of a head by diagonal, readable from -RowMap::kMargin on.
  const float* head(int64_t h) const {
    return data.data() + head_index(h) * stride + RowMap::kMargin;
  }
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
  RowMap map;
  AlignedFloats panels, rows;   // no rows if the pass does not read them
  std::vector<uint8_t> finite;  // [heads][count16 / kLanes]: whether a panel has no infinity or NaN

  explicit operator bool() const { return heads > 0; }
  int64_t head_index(int64_t h) const { return heads == 1 ? 0 : h; }
  // [rows / kLanes][columns16][kLanes]; row: a multiple of kLanes
  const float* panel(int64_t h, int64_t row) const {
    return panels.data() + (head_index(h) * count16 + row) * columns16;
  }
  const float* row(int64_t h, int64_t row) const {
    return rows.data() + (head_index(h) * count16 + row) * columns16;
  }
  bool all_finite(int64_t h, KeyRange some) const {
    const auto at = [&](int64_t panel) {
      return finite.begin() + head_index(h) * count16 / kLanes + panel;
    };
    return std::all_of(at(some.first / kLanes), at(round_up(some.last, kLanes) / kLanes),
                       [](uint8_t is) { return is != 0; });
  }
};

struct Problem {
  const Score<float>& score;
  float scale = 1;
  int64_t group = 1;               // query heads that share a key head
  int64_t depth = 0, depth16 = 0;  // columns of q and k
  int64_t width = 0, width16 = 0;  // columns of v
  int64_t terms = 0;   // bfloat16 terms of a value in AMX products of many queries; 0: none
  bool pairs = false;  // whether q k and p v multiply pairs (pairs-inl.h)
  bool dots = false;   // whether such a product is one instruction
  int64_t unit = 0;    // keys scored at once; a power of two, at least kLanes
  std::vector<BatchFrame> blocks;       // ordered by batch entry; each has queries
  std::vector<size_t> blocks_of_batch;  // [batch + 1]: the first block of each entry
  Rotations rotations;
  Phases phases;
  PackedBias weight, bias;
  PackedTable on_query, on_key, on_value;
  std::vector<int64_t> last_key;  // last_keys()

  Problem(const Score<float>& score, Pass pass, int64_t longest_unit, const Executor& executor);
  Problem(const Problem&) = delete;
};

// Whether products of pairs are one instruction on this machine (pairs-inl.h). Defined in
// prepare.cc, which is compiled for each target.
bool has_dots_of_pairs();

// Fills the panels of a table and, if `rows`, its rows. Defined in prepare.cc, which uses SIMD.
void pack_vectors(const Table<float>& table, float factor, bool rows, PackedTable& vectors,
                  const Executor& executor);

}  // namespace sextant::cpu
