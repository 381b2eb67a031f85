// Rows of q or k as tiles read them: in panels of kLanes rows, one set for each rotation.
#pragma once

#include <cstdint>

#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/cpu/problem.h"
#include "sextant/attention/cpu/sizes.h"
#include "sextant/attention/cpu/tile/epilogue.h"
#include "sextant/base/simd/amx.h"

namespace sextant::cpu {

enum class Side { kQuery, kKey };

// Each set is [rows / kLanes][depth16][kLanes].
struct Panels {
  bool has_plain = false;
  float* plain = nullptr;     // not rotated; null if not needed
  float** rotated = nullptr;  // [rotations]; plain where a rotation is the identity on this side
  // The rotated rows with columns in pairs, [depth16 / 2] for [depth16]; null unless products are
  // of pairs (pairs-inl.h).
  float** pairs = nullptr;
  // The rotated rows split into bfloat16 terms (bf16x3-inl.h), one term after the other; null
  // unless products are of terms. Queries are [rows][pairs of columns], keys [rows / kLanes][pairs
  // of columns][kLanes].
  float** terms = nullptr;
  int64_t term_step = 0;
  float* lines = nullptr;  // [kLanes][depth16]: the rows of one panel of queries

  Panels() = default;
  // read_plain: a table reads the rows without rotation, whatever the rotations are.
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

  // The operand of products.
  const float* const* factors() const { return pairs ? pairs : rotated; }

  static const Rotation* rotation(const RotationPair& sides, Side side) {
    return side == Side::kQuery ? sides.query.rotation : sides.key.rotation;
  }
};

// Queries of one head. `first`, a multiple of kLanes, counts from the frame's first query.
struct QueryTile {
  const BatchFrame* block = nullptr;
  int64_t head = 0, first = 0, rows = 0;
  const float* const* rotated = nullptr;    // [rotations]; in pairs if products are of pairs
  const float* const* imaginary = nullptr;  // the same for q_imag; null without a modulus
  // The rows that meet A, in panels or rows of table_columns16(): plain, or those of r.
  const float* of_tables = nullptr;
  const float* axis_products = nullptr;  // with A of the axes, [rows][axis_columns]; or null
  bool in_rows = false;                  // the sets are [rows][depth16] instead of panels
};

// The keys of one unit.
struct KeyTile {
  KeyRange keys;  // of the frame
  const float* plain = nullptr;
  const float* const* rotated = nullptr;  // [rotations]; in pairs if products are of pairs
};

// Products k . B of a tile of queries with a unit of keys.
struct KeyProducts {
  // One term for each sixteen keys and all of the tile's queries. Keys beyond the clip distance of
  // a clipped table have one product for all queries.
  EpilogueTerm* panels = nullptr;  // [unit / kLanes]
  float* near = nullptr;           // [rows16][kScoreStride]
  float* far = nullptr;            // [kScoreStride]
  float* across = nullptr;         // scratch: [kLanes keys][rows16]; when scoring, [kLanes][kLanes]

  KeyProducts() = default;
  // For at most `rows16` queries; empty without B.
  KeyProducts(const Problem& problem, int64_t rows16, Arena& arena) {
    if (!problem.on_key) return;
    panels = arena.take<EpilogueTerm>(problem.unit / kLanes);
    near = arena.floats(rows16 * kScoreStride);
    far = arena.floats(kScoreStride);
    across = arena.floats(kLanes * rows16);
  }
};

// Output of scoring a strip: [kStrip][kScoreStride] each.
struct ScoreStrip {
  float* scores = nullptr;
  // The product before weight and modulus; the same memory as `scores` if it is not needed.
  float* real = nullptr;
  float* imaginary = nullptr;  // null without a modulus
};

}  // namespace sextant::cpu
