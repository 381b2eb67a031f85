// The forward pass: its items, the scratch memory of a thread, and softmax states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/cpu/panels.h"
#include "sextant/attention/cpu/problem.h"
#include "sextant/attention/cpu/tile/softmax_state.h"
#include "sextant/attention/cpu/visibility.h"
#include "sextant/base/simd/amx.h"

namespace sextant::cpu {

// A task: queries of all heads that share a key head, against units of keys.
struct ForwardItem {
  size_t block = 0;
  int64_t key_head = 0;
  int64_t first = 0, rows = 0;  // queries
  KeyRange units;
  // The index of the results of the units, counted from `first_unit`, if these are merged later; or
  // -1.
  int64_t partial = -1, first_unit = 0;
};

// Scratch for decoding: few queries are multiplied with keys and values for all heads of a group at
// once, so that each row of the cache is read once. Row g * queries + i is query i of head g.
struct GroupedQueries {
  int64_t rows16 = 0;              // 0: items have too many queries
  float** queries = nullptr;       // [rotations] of [rows16 / kLanes][depth16][kLanes]
  float** products = nullptr;      // [rotations] of [rows16][kScoreStride]
  float* weights = nullptr;        // [rows16][kScoreStride]; with one rotation, its products
  float* weight_panels = nullptr;  // [rows16 / kStrip][kUnit][kStrip]
  SoftmaxState unit;

  GroupedQueries(const Problem& problem, int64_t rows, Arena& arena);
};

// Scratch for AMX: kAmxRows queries of a head are a group. There are several buffers, because
// weights of one group are made while AMX multiplies the groups before and after. Empty unless
// products are of terms.
struct Tiled {
  static constexpr int kScores = 3, kWeights = 2;
  float** products[kScores] = {};  // [rotations] of [kAmxRows][kScoreStride]
  float* scores[kScores] = {};     // [kAmxRows][kScoreStride]; with one rotation, its products
  float* weights[kWeights] = {};   // in terms: [kAmxRows][kPairStride]
  SoftmaxState units[kWeights];    // [kAmxRows]
  float* values = nullptr;         // in terms: [unit / 2][width16]
  float* totals = nullptr;  // row sums of a group's weights, [kAmxRows][amx::TileQueue::kTotals]
  int64_t weight_step = 0, value_step = 0;  // strides from term to term

  Tiled(const Problem& problem, Arena& arena);
};

struct ForwardScratch {
  ForwardScratch(const Problem& problem, int64_t rows, Arena& arena);

  int64_t rows16;  // rows of one head's queries, rounded up
  GroupedQueries grouped;
  Tiled tiled;
  Visibility visibility;
  Panels keys;
  float* values;                             // [unit][width16], if v must be copied
  float* value_pairs;                        // [unit / 2][width16], if products are of pairs
  std::span<Panels> heads;                   // of queries, for each head of the group
  std::span<Panels> imaginary;               // the same; empty: no modulus
  std::span<Panels> grown, grown_imaginary;  // with growth: one, times the factors of one unit
  float* factors;
  KeyProducts key_products;
  float* table_queries;   // panels of r, [group][rows16][table_query16]; or null
  float* axis_products;   // [group][rows16][axis_columns]; null without A of axes
  float* axis_scratch;    // [rows16][A.count16]
  float* query_products;  // q . A with all rows of a short A, [group][rows16][A.count16]; or null
  float* table_products;
  ScoreStrip strip, second;
  float* weights;     // of a strip, as a panel [kUnit][kStrip]
  SoftmaxState unit;  // of a strip
  SoftmaxState all;   // of all queries of an item: [group][rows16]
  uint8_t* fresh;     // [group][strips]: whether nothing is merged yet
};

// How a forward pass is cut into items; it follows from the plan, and serves every layer.
struct ForwardItems {
  int64_t item_rows = 0;  // most queries of each head in an item
  std::vector<ForwardItem> items;
  std::vector<ForwardItem> merges;  // items that were cut by units, with all of their units
  int64_t states_size = 0;          // floats of the partial results that are merged
  int64_t states_room = 0;          // the most of these of any plan so far
  double seconds = 0;               // an estimate of the work

  // Sets all of it, in the memory of the plan before.
  void renew(const PassPlan& plan, std::span<const Sweep> sweeps, const PlanShape& shape,
             int workers);

 private:
  void cut_units(const PassPlan& plan, std::span<const Sweep> sweeps, const PlanShape& shape,
                 int workers);

  std::vector<ForwardItem> uncut_;
};

struct Forward {
  const Problem& problem;
  const HostAttended<float>& result;
  float* softmax_states = nullptr;  // [ForwardItems::states_room]

  // The state of one strip, counted over the heads of the group, of an item that was cut.
  SoftmaxState partial(const ForwardItem& item, int64_t unit, int64_t strip) const {
    const int64_t size = kStrip * (2 + problem.width16);
    const int64_t strips = problem.group * ((item.rows + kStrip - 1) / kStrip);
    float* at = softmax_states + item.partial + ((unit - item.first_unit) * strips + strip) * size;
    return {at, at + kStrip, at + 2 * kStrip};
  }
};

// Dispatch to the SIMD target of the machine, in forward.cc.
void run_forward_item(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch);
void run_forward_merge(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch);
// The most floats of queries and results of an item, which share the L2 cache with a unit of keys
// and values.
int64_t item_floats();

}  // namespace sextant::cpu
