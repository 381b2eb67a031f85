// Rows of q or k made ready for tiles: in panels of kLanes rows, one set for each way of turning.
#pragma once

#include <cstdint>

#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/cpu/problem.h"
#include "sextant/attention/cpu/sizes.h"
#include "sextant/attention/cpu/tile/epilogue.h"
#include "sextant/base/simd/amx.h"

namespace sextant::cpu {

enum class Side { kQuery, kKey };

// [rows / kLanes][depth16][kLanes] each.
struct Panels {
  bool has_plain = false;
  float* plain = nullptr;     // as the method gave them; null if nobody reads them
  float** rotated = nullptr;  // [ways]; plain where the way does not turn this side
  // What is turned in pairs of columns, [depth16 / 2] for [depth16]; null if products are not of
  // those.
  float** pairs = nullptr;
  // What is turned in parts (bfloat16-inl.h), if products are of those: of queries [rows] of pairs
  // of columns, of keys [rows / kLanes][pairs of columns][kLanes], part by part.
  float** terms = nullptr;
  int64_t term_step = 0;
  float* lines = nullptr;  // of a panel of queries: its rows

  Panels() = default;
  // read_plain: besides the ways that turn nothing, a table reads the rows as they are.
  Panels(const Problem& problem, Side side, bool read_plain, int64_t rows, Arena& arena)
      : has_plain(read_plain),
        rotated(arena.take<float*>(static_cast<int64_t>(problem.rotations.list.size()))) {
    const int64_t size = round_up(rows, kLanes) * problem.depth16;
    for (const RotationPair& sides : problem.rotations.list)
      has_plain = has_plain || !rotation(sides, side);
    if (has_plain) plain = arena.floats(size);
    for (size_t w = 0; w < problem.rotations.list.size(); ++w) {
      float* own = rotation(problem.rotations.list[w], side) ? arena.floats(size) : plain;
      if (rotated) rotated[w] = own;
    }
    if (problem.terms > 0) {
      terms = arena.take<float*>(static_cast<int64_t>(problem.rotations.list.size()));
      term_step = round_up(rows, amx::kDepth) * amx::paired(problem.depth16);
      for (size_t w = 0; w < problem.rotations.list.size(); ++w) {
        float* own = arena.floats(problem.terms * term_step);
        if (terms) terms[w] = own;
      }
      if (side == Side::kQuery) lines = arena.floats(kLanes * problem.depth16);
    }
    if (!problem.pairs) return;
    pairs = arena.take<float*>(static_cast<int64_t>(problem.rotations.list.size()));
    for (size_t w = 0; w < problem.rotations.list.size(); ++w) {
      float* own = arena.floats(size / 2);
      if (pairs) pairs[w] = own;
    }
  }

  // What products read.
  const float* const* factors() const { return pairs ? pairs : rotated; }

  static const Rotation* rotation(const RotationPair& sides, Side side) {
    return side == Side::kQuery ? sides.query.rotation : sides.key.rotation;
  }
};

// Some queries of one head, from `first` of the frame on, a multiple of kLanes.
struct QueryTile {
  const BatchFrame* block = nullptr;
  int64_t head = 0, first = 0, rows = 0;
  const float* plain = nullptr;
  const float* const* rotated = nullptr;    // [ways]; in pairs, if products are of those
  const float* const* imaginary = nullptr;  // the same, or null: no modulus
  bool in_rows = false;                     // [rows][depth16] each, and not panels
};

// The keys of one unit.
struct KeyTile {
  KeyRange keys;  // of the frame
  const float* plain = nullptr;
  const float* const* rotated = nullptr;  // [ways]; in pairs, if products are of those
};

// k . B of a tile of queries with a unit of keys.
struct KeyProducts {
  // Of the tile's queries and sixteen keys each. Far keys of a clipped table have the same for all.
  EpilogueTerm* panels = nullptr;  // [unit / kLanes]
  float* near = nullptr;           // [rows16][kScoreStride]
  float* far = nullptr;            // [kScoreStride]
  float* across = nullptr;         // [kLanes][rows16], with keys for rows; kLanes wide when scoring

  KeyProducts() = default;
  // Of at most `rows16` queries; nothing if there is no B.
  KeyProducts(const Problem& problem, int64_t rows16, Arena& arena) {
    if (!problem.on_key) return;
    panels = arena.take<EpilogueTerm>(problem.unit / kLanes);
    near = arena.floats(rows16 * kScoreStride);
    far = arena.floats(kScoreStride);
    across = arena.floats(kLanes * rows16);
  }
};

// Where the scores of a strip go: [kStrip][kScoreStride] each.
struct ScoreStrip {
  float* scores = nullptr;
  // The product before weight and modulus. Without a need for it: `real` is `scores`.
  float* real = nullptr;
  float* imaginary = nullptr;  // null: no modulus
};

}  // namespace sextant::cpu
