// What both directions know of a call before the first tile: which frames there are, how rows are
// turned, and the tables in the form that tiles read them in. All of it is O(rows * columns).
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

// A frame of one batch entry. Inside it queries and keys are counted from its first ones.
struct BatchFrame {
  Frame frame;           // batch is a batch entry
  int64_t phases = 0;    // which Phases hold for it
  int64_t diagonal = 0;  // of its first query and first key
};

// A table of one column, by diagonal: w or b.
struct PackedBias {
  int64_t heads = 0;  // 0: absent
  int64_t stride = 0;
  AlignedFloats data;

  explicit operator bool() const { return heads > 0; }
  int64_t head_index(int64_t h) const { return heads == 1 ? 0 : h; }
  // Readable from -RowMap::kMargin on.
  const float* head(int64_t h) const {
    return data.data() + head_index(h) * stride + RowMap::kMargin;
  }
};

// What a call is for. kForwardOfBfloat16: forward with products of bfloat16. Of parts: with
// products of numbers in three parts where the machine has AMX, and else as without.
enum class Pass { kForward, kForwardOfBfloat16, kForwardOfTerms, kBackward, kBackwardOfTerms };

// A, B or C. Products (q . A) read it in panels, sums of its rows (weights . C) by rows; rows and
// columns are padded with zeros to multiples of kLanes. The map of B counts diagonals backwards,
// since its tiles have keys for rows: there the diagonal falls from one query to the next. Rows of
// A and B may lie from last to first (map.rows_turned()).
struct PackedTable {
  int64_t heads = 0;  // 0: absent
  int64_t count = 0, columns = 0;
  int64_t count16 = 0, columns16 = 0;
  RowMap map;
  AlignedFloats panels, rows;   // no rows if the pass does not read them
  std::vector<uint8_t> finite;  // [heads][count16 / kLanes]: no infinity or NaN in a panel

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
  int64_t terms = 0;  // if not 0: of numbers in so many parts (amx.h), where there are many queries
  bool pairs = false;              // q k and p v are products of pairs (pairs-inl.h)
  bool dots = false;               // which are one instruction
  int64_t unit = 0;                // keys that are scored at once; a power of two, at least kLanes
  std::vector<BatchFrame> blocks;  // by batch entry; every one has queries
  std::vector<size_t> blocks_of_batch;  // [batch + 1]: where each entry's start
  Rotations rotations;
  Phases phases;
  PackedBias weight, bias;
  PackedTable on_query, on_key, on_value;
  std::vector<int64_t> last_key;  // last_keys()

  Problem(const Score<float>& score, Pass pass, int64_t longest_unit, const Executor& executor);
  Problem(const Problem&) = delete;
};

// Whether products of pairs are one instruction on this machine (pairs-inl.h); in prepare.cc, for
// targets differ.
bool has_dots_of_pairs();

// Fills the panels of a table and, if asked, its rows; in prepare.cc, for it is done by vectors.
void pack_vectors(const Table<float>& table, float factor, bool rows, PackedTable& vectors,
                  const Executor& executor);

}  // namespace sextant::cpu
