// A score equation that owns its operands and can be copied and changed: golden cases are loaded
// into it, and property tests compare two of them, which they draw by RandomScore.
#pragma once

#include <cstdint>
#include <vector>

#include "sextant/attention/score.h"
#include "tests/attention/tensor.h"

namespace sextant::oracle {

template <class T>
struct OwnedTable {
  Tensor<T> rows = {};               // [1, 1 or heads, R, columns]; empty: no such term
  std::vector<int32_t> row_at = {};  // diagonal -> row, or empty
};

struct OwnedSweep {
  std::vector<KeyRange> key_ranges = {};  // [queries], or [batch, queries]
  Rotation rotation = {};                 // without pairs: q and k are not rotated
  std::vector<int64_t> query_rotary_positions = {},
                       key_rotary_positions = {};  // [axes, rows], the same for every batch entry
  std::vector<Turns> query_offset = {}, key_offset = {};
};

template <class T>
struct Problem {
  Tensor<T> q = {}, k = {}, v = {};
  Tensor<T> q_imag = {};  // the shape of q, or empty
  double scale = 1;
  std::vector<Frame> frames = {};
  std::vector<OwnedSweep> sweeps = {};
  Diagonals diagonals = {};
  OwnedTable<T> weight = {}, bias = {}, on_query = {}, on_key = {}, on_value = {};
  std::vector<T> sink = {};
  Tensor<uint8_t> mask = {};  // [1 or batch, 1 or heads, queries, keys]; empty: none

  // Views into this problem, which must outlive them and must not be moved.
  Score<T> score() const;

  template <class U>
  Problem<U> as() const;
};

// One frame over all rows, one sweep over `visible`, and diagonals for every distance between a
// query and a key. Query row i is at position first_query + i, key row j at j.
template <class T>
void place_plainly(Problem<T>& problem, int64_t first_query, std::vector<KeyRange> visible);

std::vector<KeyRange> causal_runs(int64_t queries, int64_t first_query);
std::vector<KeyRange> whole_ranges(int64_t queries, int64_t keys);

}  // namespace sextant::oracle
