// The backward pass: its tasks, the scratch memory of a thread, and the sums of gradients.
//
// A task is one key head of one batch entry, or every kSplits-th unit of its keys. It walks over
// its units and, for each, over the queries that see it, a block of kQueryBlock at a time; so dk
// and dv of a unit are complete when the task leaves it, and dq accumulates in memory of the task:
//
//   s = q k^T ..., p = e^(s - lse)                    dv += p^T do
//   dp = do v^T    ds = p (dp - sum_j p dp)           dq += ds k      dk += ds^T q
//
// Gradients of tables accumulate in memory of a lane, which is a fixed sequence of tasks. The
// numbers of splits and lanes follow from the shapes alone, and partial sums are added in a fixed
// order, so the gradients have the same bits for any number of threads. The gradients of q, k and v
// do not depend on the rest of the batch either.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/cpu/panels.h"
#include "sextant/attention/cpu/problem.h"
#include "sextant/attention/cpu/visibility.h"

namespace sextant::cpu {

inline constexpr int64_t kQueryBlock = 64;  // queries

// Keys that are scored at once, for rows of at most `columns`. With more, a unit's keys, values and
// gradients would not fit into the L2 cache, whose size is a guess from the vector length. Defined
// in backward.cc.
int64_t backward_unit(int64_t columns);

// One unit of keys of one block.
struct UnitOfBlock {
  size_t block = 0;
  int64_t unit = 0;
};

// dq of a query is summed over every kSplits-th unit of its keys, and these sums are then added in
// their order, whether one task makes all of them or each is a task.
inline constexpr int64_t kSplits = 4;

struct BackwardTask {
  int64_t key_head = 0, batch = 0;
  int64_t first_split = 0, last_split = 0;
};

// Sums of the gradients of tables over the tasks of a lane, for the query heads
// [first_head, first_head + heads); tables that all heads share have one head.
struct TableSums {
  int64_t first_head = 0, heads = 0;
  float* weight = nullptr;  // [heads][PackedBias::stride]
  float* bias = nullptr;
  float* on_query = nullptr;  // [heads][count16][columns16]
  float* on_key = nullptr;
  float* on_value = nullptr;
  float* axis_bias = nullptr;      // [heads][AxisBias::stride]
  float* axis_on_query = nullptr;  // [heads][count16][columns16]
};

struct TableTasks {
  int64_t first_task = 0, last_task = 0;
  TableSums sums;    // the heads of its tasks; the memory is TableGradients'
  int64_t size = 0;  // floats of all its sums
};

struct Backward {
  const Problem& problem;
  const HostAttended<const float>& result;
  const HostAnyView<const float>& d_out;
  const HostGrad<float>& grad;
  int64_t splits = 1;  // those with any unit
  bool cut = false;    // whether each split is a task
  // Whether each row of dk and dv belongs to one unit, which writes it; else units add to zeros.
  bool keys_once = true;
  std::vector<BackwardTask> tasks;
  std::vector<std::vector<UnitOfBlock>> units;  // [batch]
  std::vector<TableTasks> lanes;
  double seconds = 0;     // estimate of the work
  float* mean = nullptr;  // [batch][heads][queries]: do . out, which is sum_j p dp

  Backward(const Problem& problem, const HostAttended<const float>& result,
           const HostAnyView<const float>& d_out, const HostGrad<float>& grad, Workspace& memory);

  bool wants_queries() const { return grad.q || grad.q_imag || grad.table_query; }
  // The sizes of dq of a task: [2 with a modulus][group][queries][depth16], and behind it dr,
  // [group][queries][table_query16].
  int64_t queries() const { return problem.group * problem.score.q.rows; }
  int64_t queries_size() const { return queries() * problem.depth16; }
  int64_t query_sums_rows() const { return queries() * (problem.score.q_imag ? 2 : 1); }
  int64_t table_query_sums() const { return query_sums_rows() * problem.depth16; }
  int64_t query_sums_size() const { return table_query_sums() + queries() * problem.table_query16; }
  float* mean_of(int64_t b, int64_t h) {
    return mean + (b * problem.score.q.heads + h) * problem.score.q.rows;
  }
  const float* mean_of(int64_t b, int64_t h) const {
    return mean + (b * problem.score.q.heads + h) * problem.score.q.rows;
  }

 private:
  void cut_units();
  void cut_tasks();
  void cut_lanes();
};

// Rows of q or k as matrices, for each rotation, or their gradients.
struct RowSets {
  float* plain = nullptr;
  float** rotated = nullptr;  // [rotations]

  RowSets() = default;
  RowSets(const Panels& like, const Problem& problem, int64_t rows, Side side, Arena& arena);
};

// Scratch for AMX; all but the sums are in three bfloat16 terms (bf16x3-inl.h). Empty unless
// products are of terms. "Across" means transposed, with queries in pairs. Queries are paired with
// those of the next strip, so that two strips are paired while they are in the L1 cache.
struct BackwardTiled {
  float** products = nullptr;        // [rotations] of [kQueryBlock][kScoreStride]; with one, scores
  float** key_lines = nullptr;       // [rotations] of [unit / 2][depth16], pairs of keys
  float* values = nullptr;           // panels with the layout of keys in Panels
  float** queries_across = nullptr;  // [rotations] of [depth16][kQueryBlock / 2]
  float* d_out = nullptr;            // [kQueryBlock] of pairs of columns
  float* d_out_across = nullptr;     // [width16][kQueryBlock / 2]
  float* weights = nullptr;          // [kQueryBlock / 2][kScoreStride], pairs of queries
  float* grads = nullptr;            // score gradients, the same
  float* grad_rows = nullptr;        // the same, [kQueryBlock][kPairStride], pairs of keys
  float** key_sums = nullptr;        // [rotations] of [depth16][kScoreStride], keys across
  float* value_sums = nullptr;       // [width16][kScoreStride]
  float* panel = nullptr;            // [columns16][kLanes]
  int64_t key_step = 0, value_step = 0, query_step = 0, d_out_step = 0, d_out_across_step = 0,
          line_step = 0, row_step = 0;  // strides from term to term

  BackwardTiled() = default;
  BackwardTiled(const Problem& problem, float* scores, Arena& arena);
};

struct BackwardScratch {
  BackwardScratch(const Backward& backward, Arena& arena);

  Visibility visibility;
  Panels keys;
  RowSets key_rows, key_grads;  // [unit][depth16]
  Panels queries;
  RowSets query_rows;  // [kQueryBlock][depth16]
  Panels imaginary, grown, grown_imaginary;
  RowSets imaginary_rows;
  float* values;       // panels, [unit / kLanes][width16][kLanes]
  float* value_grads;  // [unit][width16]
  float* d_out;        // [kQueryBlock][width16], if it must be copied
  float *lse, *mean;   // [kQueryBlock]
  // [kQueryBlock][kScoreStride]; gradients of a modulus and of several rotations may be null.
  float *weights, *grads, *imaginary_grads, *rotation_grads, *rotation_imaginary_grads;
  KeyProducts key_products;
  // [kStrip][kScoreStride]; or null.
  ScoreStrip second;
  float *real, *imaginary_product, *weighted;
  float* table_products;  // [kQueryBlock][rows of a table]
  float* rotated_grads;   // [kQueryBlock][depth16]
  float* table_queries;   // r: [kQueryBlock][table_query16]; or null
  float* table_grads;     // of the rows that meet A, [kQueryBlock][table_columns16()]; or null
  float* score_grads;     // `grads`, or, if these become those of products, a copy for r . A
  // Products of a task's queries with A of the axes, and their gradients: [group][queries]
  // [axis_columns]; or null. axis_scratch: [kQueryBlock][A.count16].
  float *axis_products, *axis_grads, *axis_scratch;
  float* panel;    // [depth16][kLanes]
  float* factors;  // [depth16]
  BackwardTiled tiled;
  // Sums of dq of a task, in memory of QueryGradients if each split is a task; and else sums of one
  // split.
  float *query_sums, *split_sums;
};

// Dispatch to the SIMD target of the machine, in backward.cc.
void run_backward_mean(Backward& backward, int64_t batch, int64_t head);
void run_backward_task(const Backward& backward, const TableSums& sums, int64_t task,
                       BackwardScratch& scratch);

// Partial sums are kept until all tasks of the same gradient are done, then reduced in a fixed
// order, and their memory is reused. So there are about as many as running tasks. Any thread may
// take and put.

// A pool of uninitialised memory for sums, all of one size, which grows when none is free.
class SumsPool {
 public:
  explicit SumsPool(int64_t size) : size_(size) {}
  float* take();
  void give_back(std::span<float* const> sums);

 private:
  const int64_t size_;
  std::mutex mutex_;
  std::vector<AlignedFloats> all_;
  std::vector<float*> free_;
};

// Sums of dq where each split is a task, kept until all splits of their head are done.
class QueryGradients {
 public:
  explicit QueryGradients(const Backward& backward);
  float* take() { return pool_.take(); }
  void put(int64_t task, float* sums);  // after the task is done

 private:
  struct Head {
    std::vector<float*> sums;
    int64_t missing = 0;
  };

  const Backward& backward_;
  SumsPool pool_;
  std::mutex mutex_;
  std::vector<Head> heads_;
};

// Sums of the gradients of tables, kept until all lanes of their heads are done; if all heads share
// a table, until finish() adds up all lanes.
class TableGradients {
 public:
  // The constructor writes zeros to gradients that have no sums.
  explicit TableGradients(const Backward& backward);
  const TableSums& take(int64_t lane);  // zeros
  void put(int64_t lane);               // after all of its tasks are done
  void finish(const Executor& executor);

 private:
  struct Group {
    int64_t first_lane = 0, last_lane = 0, missing = 0;
  };
  void write(const Group& group, const Executor& executor);

  const Backward& backward_;
  std::vector<TableTasks> lanes_;
  std::vector<float*> sums_;  // [lanes]
  std::vector<Group> groups_;
  SumsPool pool_;
  std::mutex mutex_;
};

// Cuts a lane's sums out of memory, or counts them; in plan.cc.
void lay_out(const Backward& backward, TableSums& sums, Arena& arena);

// Writes dq; in sums.cc. sums: those of one task, or one for each split of a head.
void write_query_grads(const Backward& backward, const BackwardTask& task,
                       std::span<const float* const> sums);
void write_sink_grads(const Backward& backward);

}  // namespace sextant::cpu
