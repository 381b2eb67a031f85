// The part of a plan that kernels read, on the host: tiles of queries and the keys that each of
// them visits, and tiles of keys with the queries that may see them. Nothing here needs a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/cuda/arguments.h"
#include "sextant/attention/plan.h"

namespace sextant::cuda {

// Frames whose rotations are the same, so that one launch serves them.
struct PassPlan {
  std::vector<FrameRows> frames;
  std::vector<QueryTile> query_tiles;
  std::vector<KeySpan> spans;  // [query tiles][sweeps]
  std::vector<KeyTile> key_tiles;
  std::vector<KeyTilePart> parts;  // those of a tile follow each other, by sweep and frame
  // The frame whose rotations the pass has, and the rows that it works on.
  int64_t frame = 0;
  int64_t first_query = 0, queries = 0, first_key = 0, keys = 0;
};

// One pass, or, if frames have rotations of their own (SideRotation::frame_stride), one for each
// frame with queries. tile: the queries and the keys of a tile.
std::vector<PassPlan> passes_of(const Plan& plan, const PlanShape& shape, int32_t tile,
                                Passes passes);

// The rows that each query sees, [sweeps][batch][queries]. Queries in no frame see none.
std::vector<Visible> visible_rows(const Plan& plan, const PlanShape& shape);

// Whether each query of each batch entry is in a frame.
bool covers_queries(const Plan& plan, const PlanShape& shape);

// The diagonals that have each row of a table: those of row r are diagonal_at[row_begin[r]] to
// diagonal_at[row_begin[r + 1] - 1], in ascending order.
struct DiagonalsOfRows {
  std::vector<int32_t> row_begin, diagonal_at;
};
DiagonalsOfRows diagonals_of_rows(std::span<const int32_t> row_at, int64_t diagonals, int64_t rows);

// The most columns of rows in tiles.
inline constexpr int64_t kMostColumns = 256;
// Throws Error that names the field if it is greater than kernels allow.
void expect_at_most(const char* field, int64_t most, int64_t got);
// Throws Error that names the field if the plan has more rows, diagonals or sweeps than kernels
// count.
void check_sizes(const Plan& plan, const PlanShape& shape);

}  // namespace sextant::cuda
