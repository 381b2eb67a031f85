// Decoding of cached sequences, step after step, in memory that is taken once.
//
//   Decoding decoding(cache, {{a, &rope}, {b, &rope}}, {.heads = 8, .most_rows = 4096});
//   for each step:
//     cache.append(...);                        // of each layer, for each sequence
//     decoding.step(cache);                     // once for all layers
//     decoding.attend(cache, {.q = q}, {out, lse});   // for each layer, with its cache
//
// From the second step on, step() and attend() do not allocate on a serial executor or a pool of
// make_thread_pool(). Exceptions: rotations with growth (XPOS), and the first steps after counts of
// queries have changed. append() does not allocate
// where KvCache::reserve() has taken the pages. A step takes the time of the rows that are seen:
// those before a window cost the numbers of their pages.
//
// Sequences may differ in length, position, rotation, window and number of queries. The results
// are, bit by bit, those of a plan that is made for one call.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/export.h"
#include "sextant/base/workspace.h"
#include "sextant/cache/kv_cache.h"

namespace sextant {

struct DecodingShape {
  int64_t heads = 0;       // of queries
  int64_t queries = 1;     // rows of q: the most that a sequence has in a step
  int64_t most_rows = 0;   // the most that a sequence will have
  bool key_table = false;  // there is a table B (Operands::on_key)
};

class SEXTANT_API Decoding {
 public:
  // Takes memory for sequences of most_rows rows, and computes the phases of their keys where these
  // are stored unrotated. The rotations of the entries and the executor of `context` must outlive
  // the object; a workspace or stream of `context` is not used. row_at: maps of tables by distance,
  // with a row for each of diagonals() (Operands::bias and others); their memory must outlive the
  // object. Throws Error that names the field.
  Decoding(const KvCache& cache, std::vector<CachedBatch::Entry> entries,
           const DecodingShape& shape, const RowMaps& row_at = {},
           const Backend& backend = cpu_backend(), const Context& context = {});
  Decoding(const Decoding&) = delete;

  // The distances by which tables and maps are indexed, from the farthest to 0: those of most_rows
  // rows, or of the longest window, if all entries have shorter ones.
  Diagonals diagonals() const { return {.farthest = distances_ - 1, .count = distances_}; }

  // Takes the rows that the sequences have now; the queries of the step are the last ones,
  // counts[b] of entry b (CachedBatch), or without counts `queries` of each. Throws Error if a
  // sequence has more than most_rows, or if it has rotated keys of another rotation than its
  // entry's; attend() is then refused until a step succeeds.
  void step(const KvCache& cache, std::span<const int64_t> counts = {});

  // Attends with the keys and values of `cache`, that of step() or one that was filled by the same
  // calls. operands: all but k, v and key_bias. A weight or bias without map has a row for each of
  // diagonals(), and so has query_bias a column. Throws Error as attend() and
  // CachedBatch::set_keys() do. executor: runs this call; null: that of the context.
  void attend(const KvCache& cache, Operands<float> operands, const Attended<float>& result,
              const Executor* executor = nullptr);

 private:
  void set_diagonals(int64_t count);
  PlanShape plan_shape() const;

  DecodingShape shape_;
  int64_t key_heads_, key_columns_, value_columns_;
  RowMaps row_at_;
  CachedBatch batch_;
  int64_t distances_;
  Workspace memory_;
  Context context_;
  std::optional<PreparedPlan> prepared_;
  bool grown_ = false;  // whether a step has prepared most_rows rows
  bool ready_ = false;  // whether the last step() succeeded
};

}  // namespace sextant
