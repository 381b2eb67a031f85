// The arguments of kernels: plain structs of sizes and device addresses, the same for nvcc and the
// host's compiler. The equation and its names are those of score.h.
#pragma once

#include <cstdint>

namespace sextant::cuda {

// The type of an element in memory.
enum class Stored : int32_t { kFloat32, kBfloat16, kFloat16, kFloat64, kInt8 };

// A view [batch, heads, rows, columns] of device memory, in elements. A shared dimension has
// stride 0.
struct Rows {
  void* data = nullptr;
  int64_t batch_stride = 0, head_stride = 0, row_stride = 0, column_stride = 1;
  int32_t columns = 0;
  Stored type = Stored::kFloat32;
  // Rows of the kernel's own type can be copied by 16 bytes.
  int32_t aligned = 0;

#ifdef __CUDACC__
  __host__ __device__
#endif
      explicit
      operator bool() const {
    return data != nullptr;
  }
};

// A table by distance and the row of each diagonal; null row_at: row = diagonal.
struct TableRows {
  Rows rows;
  const int32_t* row_at = nullptr;
};

// An axis of positions (plan.h). Query i and key j of entry b meet row
// map[key_at[b * key_stride + j] - query_at[b * query_stride + i]] of a table, or none if that is
// below 0; a null map has no rows. Positions are modulo 2^32, as are their differences.
struct AxisRows {
  const int32_t *query_at = nullptr, *key_at = nullptr;
  int64_t query_stride = 0, key_stride = 0;
  const int32_t *bias = nullptr, *on_query = nullptr;
};

// Rows [row, row + queries) of q and their keys, as plan.h's Frame.
struct FrameRows {
  int32_t query_row = 0, queries = 0, key_row = 0, keys = 0;
  int64_t diagonal = 0;    // of the first query and the first key
  int32_t batch = -1;      // -1: every one
  int32_t first_tile = 0;  // in Arguments::query_tiles, one batch entry after the other
  int32_t tiles = 0;       // of one batch entry
};

// A tile of queries of one frame and batch entry; its spans, one for each sweep, lie at
// Arguments::spans + item * sweeps.
struct QueryTile {
  int32_t batch = 0, frame = 0;
  int32_t first_query = 0;  // a row of q
};
// Rows of k that a tile of queries sees in one sweep; `first` begins a tile of keys, which is
// counted from the frame's first key.
struct KeySpan {
  int32_t first = 0, last = 0;
};

// A tile of keys of one batch entry and the queries that may see it.
struct KeyTile {
  int32_t batch = 0, first_part = 0, parts = 0;
  int32_t first_key = 0;  // a row of k
};
// Queries [first_query, last_query) of a frame, in one sweep; first_query begins a tile.
struct KeyTilePart {
  int32_t frame = 0, sweep = 0;
  int32_t first_query = 0, last_query = 0;
};

// The rows of k that a query sees in a sweep.
struct Visible {
  int32_t first = 0, last = 0;
};

// Rotary positions, [batch or 1][axes][rows].
struct Positions {
  const int64_t* at = nullptr;
  int64_t batch_stride = 0, rows = 0;
};

// The pair of a channel: 0 <= pair, or -1 for a channel that is not rotated.
struct Channel {
  int32_t pair = -1, partner = 0;
  float sign = 0;  // of the partner's product with the sine
  int32_t axis = 0;
  double growth = 0;
};
struct PairFrequency {
  uint64_t frequency_high = 0, frequency_low = 0, offset_high = 0, offset_low = 0;
  int32_t axis = 0;
};

// The operands of a sweep, rotated.
struct SweepRows {
  Rows q, q_imag, k;
  // Set if the rotation has growth, which is applied where tiles are loaded.
  const Channel* growth = nullptr;
  Positions query_positions, key_positions;
};
inline constexpr int32_t kMostSweeps = 8;

struct DropoutWords {
  int32_t on = 0, least_kept = 0;
  uint32_t key_low = 0, key_high = 0;
  float kept_factor = 1;
  int64_t first_batch = 0, first_query = 0, first_key = 0;
};

// The page table of a call; page_rows is 0 without pages.
struct PageTable {
  const int64_t* at = nullptr;
  int64_t batch_stride = 0, page_rows = 0;
  Rows int8, scale;
};

// Byte offsets of a block's tiles in shared memory; -1: there is no such tile.
struct SharedTiles {
  int32_t q = -1, q_raw = -1, q_imag = -1, k = -1, k_raw = -1, v = -1, d_out = -1, table = -1;
  int32_t skew = -1, weights = -1, skewed = -1, by_diagonal = -1;
  int32_t saved = -1;  // set if there are more terms than a scale and a bias by distance
  int32_t axis_rows = -1;
  int32_t bytes = 0;
};

// The parts of the gradients of queries, of keys, or of axes, that a launch computes.
enum Parts : int32_t { kProducts = 1, kImaginary = 2, kTable = 4, kBias = 8 };

// The tables by distance, in the order of operand_list.h.
enum class TableOf : uint8_t { kWeight, kBias, kOnQuery, kOnKey, kOnValue };
inline constexpr int32_t kTables = 5;

struct Arguments {
  int32_t batch = 0, heads = 0, key_heads = 0, group = 1;
  int32_t queries = 0, keys = 0, diagonals = 0;
  int32_t depth = 0, depth16 = 0, width = 0, width16 = 0;  // columns of q and k, and of v
  int32_t sweeps = 0;
  float scale = 1, softcap = 0;
  SweepRows sweep[kMostSweeps];
  Rows q_raw, k_raw, v, d_out;  // q_raw: the rows that meet A, those of q or of table_query
  TableRows weight, bias, on_query, on_key, on_value;
  const AxisRows* axes = nullptr;
  int32_t axis_count = 0, axis_table_rows = 0;  // rows of axis_on_query
  Rows axis_bias, axis_on_query, table_query;
  // Products of q or table_query with all rows of axis_on_query, and their gradients: [batch,
  // heads, queries, axis_table_rows].
  float *axis_products = nullptr, *d_axis_products = nullptr;
  Rows query_bias, key_bias, mask;
  const float* sink = nullptr;
  Rows query_sink;
  double* origins = nullptr;  // [batch, heads, queries]; null: all 0
  DropoutWords dropout;
  SharedTiles shared;

  const FrameRows* frames = nullptr;
  int32_t frame_count = 0;
  const QueryTile* query_tiles = nullptr;
  const KeySpan* spans = nullptr;
  const Visible* visible = nullptr;  // [sweeps][batch][queries]
  const KeyTile* key_tiles = nullptr;
  const KeyTilePart* parts = nullptr;
  int32_t bands = 0;  // of table_gradients.cuh

  Rows out;                // results, of any type
  Rows lse;                // float32, [batch, heads, queries, 1]
  float* means = nullptr;  // sum over columns of d_out and out, [batch, heads, queries]

  // Gradients in float32, to which kernels add: [batch, heads, rows, columns16] for each sweep, and
  // sums_of_sweep is 0 if all sweeps are added to one; of a table, [heads, bands, 2 tile,
  // columns16].
  float* sums = nullptr;
  int64_t sums_of_sweep = 0;
  int32_t what = 0;                  // Parts
  TableOf table = TableOf::kWeight;  // of table_gradients.cuh
  Rows d_query_bias, d_key_bias, d_query_sink;
  float* d_sink = nullptr;
  double* axis_bias_sums = nullptr;  // [blocks][heads][axis_bias_rows], of axis_gradients.cuh
  int32_t axis_bias_rows = 0, item_count = 0, blocks = 0;

  // Of rows.cuh and sums.cuh.
  Rows from, to;
  PageTable pages;
  Positions times;
  const PairFrequency* pairs = nullptr;
  const Channel* channels = nullptr;
  int32_t pair_count = 0;
  float gain = 1;
  float* angles = nullptr;  // [batch or 1][rows][pairs][cos, sin]
  int64_t angles_of_batch = 0;
  int64_t first_row = 0, rows = 0;
  int32_t backward = 0;    // whether rows are rotated back
  int32_t accumulate = 0;  // whether rows are added to those that are there
  float value = 0;
  int32_t tile = 0, columns16 = 0, shared_heads = 0;  // of fold_table
  // The diagonals of each row of a table, in order: diagonal_at[row_begin[r]] ...
  const int32_t* row_begin = nullptr;
  const int32_t* diagonal_at = nullptr;
};

}  // namespace sextant::cuda
