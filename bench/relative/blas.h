// Relative attention by matrix products of OpenBLAS, as an engine writes it: a product for q k^T,
// one for each term of position, a shift or a gather, softmax, and a product with v. `block` rows
// of queries at a time: with all rows at once, scratch memory grows with their square.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant::bench {

// All arrays are [heads, rows, columns]. Conformer: tables are r, [2 rows - 1] rows a head, and
// queries with u and with v. DeBERTa: tables are the keys and the queries of positions.
struct RelativeLayer {
  bool deberta = false;
  int64_t heads = 8, rows = 0, columns = 64, table_rows = 0;
  float scale = 1;
  std::vector<float> q, k, v;
  std::vector<float> q_with_v;          // Conformer
  std::vector<float> table, key_table;  // r, or both of DeBERTa
  std::vector<int32_t> row_of;          // DeBERTa: of distance rows - 1 down to -(rows - 1)
};

// Heads are divided among threads, and each product has one thread.
void attend_by_blas(const RelativeLayer& layer, int64_t block, int threads,
                    std::vector<float>& out);

}  // namespace sextant::bench
