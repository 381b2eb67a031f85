// The steps of attention with tables of vectors by distance: products of queries with the rows that
// a strip needs; scores with these products added; and weights summed by row.
#include <algorithm>
#include <cstddef>

#include "bench/kernels/steps.h"
#include "sextant/attention/cpu/row_map.h"
#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/kernels/tables.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/score/tables-inl.h"
#include "sextant/attention/cpu/score/terms-inl.h"
#include "sextant/attention/cpu/tile/scatter-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::bench {
namespace HWY_NAMESPACE {
using namespace cpu;
using namespace cpu::HWY_NAMESPACE;

void rows_step(int64_t columns, const float* queries, const float* panels, int64_t rows,
               float* products) {
  multiply<Sum::kNew>(kStrip, rows / kLanes, columns, LeftColumns{queries, kLanes},
                      RightPanels{panels, kLanes * columns}, products, rows);
}

// met: the rows with products, from a multiple of kLanes on.
void table_score_step(const RowMap& map, int64_t diagonal, KeyRange met, int64_t columns,
                      const float* queries, const float* keys, const float* products,
                      float* scores) {
  ScoreEpilogue epilogue_terms(kStrip, {0, kUnit}, 1);
  epilogue_terms.put_table_products(map, diagonal, TableProducts::of_panels(products, met), scores);
  multiply<Sum::kNew>(kStrip, kUnit / kLanes, columns, LeftColumns{queries, kLanes},
                      RightPanels{keys, kLanes * columns}, scores, kScoreStride, Nothing(),
                      epilogue_terms.all());
}

void collect_step(const RowMap& map, int64_t diagonal, KeyRange rows, const float* weights,
                  float* sums) {
  const int64_t count = rows.last - rows.first;
  std::fill_n(sums, kStrip * count, 0.0F);
  scatter_add_by_row(map, diagonal, kStrip, kUnit, weights, kScoreStride, rows.first, sums, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
namespace {

HWY_EXPORT(rows_step);
HWY_EXPORT(table_score_step);
HWY_EXPORT(collect_step);

constexpr int64_t kQueries = 512;                          // queries that share a unit of keys
constexpr int64_t kDiagonals = kQueries + cpu::kUnit - 1;  // diagonals of these queries and keys

// Each function does the work of one strip.
class Tables {
 public:
  // row_at: the row of each diagonal; empty: each diagonal has its own row.
  Tables(int64_t columns, const std::vector<int32_t>& row_at)
      : columns_(columns), map_(row_at, kDiagonals, false), numbers_(filled([&](cpu::Arena& arena) {
          queries_ = arena.floats(kQueries * columns);
          keys_ = arena.floats(cpu::kUnit * columns);
          panels_ = arena.floats(cpu::round_up(kDiagonals, cpu::kLanes) * columns);
          scores_ = arena.floats(cpu::kStrip * cpu::kScoreStride);
          products_ = arena.fenced_floats(cpu::kStrip * cpu::round_up(kDiagonals, cpu::kLanes));
        })) {}

  void multiply() {  // products = q A
    const KeyRange rows = cpu::rounded_out(met());
    HWY_DYNAMIC_DISPATCH(rows_step)
    (columns_, queries_ + in_panels(row_, columns_), panels_ + rows.first * columns_,
     rows.last - rows.first, products_);
  }
  void score() {  // scores = q k + products
    HWY_DYNAMIC_DISPATCH(table_score_step)
    (map_, diagonal(), met(), columns_, queries_ + in_panels(row_, columns_), keys_, products_,
     scores_);
  }
  void scatter_add() {  // sums of weights by row
    HWY_DYNAMIC_DISPATCH(collect_step)
    (map_, diagonal(), cpu::rounded_out(met()), scores_, products_);
  }
  void next() { row_ = (row_ + cpu::kStrip) % kQueries; }

  int64_t rows_multiplied() const {
    const KeyRange rows = cpu::rounded_out(met());
    return rows.last - rows.first;
  }

 private:
  // The diagonal of the strip's first query and the unit's first key.
  int64_t diagonal() const { return kQueries - 1 - row_; }
  KeyRange met() const {
    return map_.rows_of(diagonal() - cpu::kStrip + 1, cpu::kUnit + cpu::kStrip - 1);
  }

  int64_t columns_, row_ = 0;
  cpu::RowMap map_;
  float *queries_, *keys_, *panels_, *scores_, *products_;
  AlignedFloats numbers_;  // the last member, since its initializer sets the pointers above
};

Steps steps_of(const std::string& name, int64_t columns, const std::vector<int32_t>& row_at) {
  const auto kernel = std::make_shared<Tables>(columns, row_at);
  const int64_t rows = kernel->rows_multiplied();
  const double product = operations_of_product(cpu::kStrip, rows, columns);
  constexpr int64_t kStrips = kQueries / cpu::kStrip;
  const auto strips = [&](auto one) { return each_part(kernel, kStrips, one); };
  return {.name = name,
          .part = "strip of 8 queries, 256 keys, " + std::to_string(rows) + " rows",
          .parts = kStrips,
          .list = {{"q A", product, strips([](Tables& t) { t.multiply(); })},
                   {"q k + q A", operations_of_product(cpu::kStrip, cpu::kUnit, columns),
                    strips([](Tables& t) { t.score(); })},
                   {"scatter_add", 0, strips([](Tables& t) { t.scatter_add(); })}}};
}

}  // namespace

Steps every_distance_steps(int64_t columns) { return steps_of("every distance", columns, {}); }

Steps far_tile_steps(int64_t columns) {
  return steps_of("far tile", columns, std::vector<int32_t>(kDiagonals));
}

}  // namespace sextant::bench
#endif
