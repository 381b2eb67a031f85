// The rows that meet A in the backward pass, those of q or of r, and their gradients. With A of
// further axes (score/axes-inl.h) a task multiplies all of its queries once; its tiles read and sum
// by position of a key, and each split turns its sums into gradients at its end.
#if defined(SEXTANT_ATTENTION_CPU_BACKWARD_TABLE_QUERIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_BACKWARD_TABLE_QUERIES_INL_H_
#undef SEXTANT_ATTENTION_CPU_BACKWARD_TABLE_QUERIES_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_BACKWARD_TABLE_QUERIES_INL_H_
#endif

#include <algorithm>

#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/backward/rotate_back-inl.h"
#include "sextant/attention/cpu/backward/tile_grads-inl.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/score/axes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

// The part of a table's sums for a head; null if there are none.
HWY_INLINE float* table_grad_of(const TableSums& sums, const PackedTable& table, float* of_table,
                                int64_t head) {
  if (!of_table) return nullptr;
  return of_table + table.head_index(head - sums.first_head) * table.count16 * table.columns16;
}

class TableQueries {
 public:
  TableQueries(const Backward& backward, const TableSums& sums, const BackwardTask& task,
               BackwardScratch& scratch)
      : backward_(backward), p_(backward.problem), sums_(sums), task_(task), w_(scratch) {}

  bool has_r() const { return p_.table_query16 > 0; }

  // The rows of a tile of queries, copied: those of r, or of q times the scale.
  const float* put_rows(const FrameRows& rows, int64_t g) const {
    float* const to = has_r() ? w_.table_queries : w_.table_grads;
    copy_some(rows, has_r() ? rows_of(p_.score.table_query) : p_.score.q, head(g), {0, rows.rows},
              to, has_r() ? 1 : p_.scale);
    return to;
  }

  // The products of a tile's queries with A of the axes; null if there are none.
  const float* products(int64_t g, const FrameRows& rows) const {
    return w_.axis_products ? w_.axis_products + place(g, rows) : nullptr;
  }

  // Multiplies all queries of the task with A of the axes. There are no gradients yet.
  void multiply_axes() const {
    if (!w_.axis_products) return;
    const int64_t columns = p_.table_columns16();
    each_block([&](const FrameRows& rows, int64_t g) HWY_ATTR {
      const float* const x = put_rows(rows, g);
      multiply_all_rows(
          p_.axis_on_query, head(g), rows.rows,
          [&](int64_t i) {
            return LeftRows{x + i * columns, columns};
          },
          w_.axis_scratch);
      spread_products(p_, task_.batch, rows.row(), rows.rows, w_.axis_scratch,
                      w_.axis_products + place(g, rows));
    });
    clear_axes();
  }

  // Sums a strip's gradients, which begin at element `at` of a tile's lines, by position of a key.
  void sum_axes(const Strip& s, int64_t at) const {
    const int64_t tile = s.queries.axis_products - w_.axis_products;
    each_axis_product(s, w_.axis_grads + tile + s.row * p_.axis_columns,
                      sums_lines(s, lines() + at));
  }

  // Adds a split's gradients of the rows that meet A of the axes, and of A.
  void collect_axes(float* query_sums) const {
    if (!w_.axis_products) return;
    const PackedTable& table = p_.axis_on_query;
    const int64_t columns = p_.table_columns16(), count = table.count16;
    each_block([&](const FrameRows& rows, int64_t g) HWY_ATTR {
      gather_products(p_, task_.batch, rows.row(), rows.rows, w_.axis_grads + place(g, rows),
                      w_.axis_scratch);
      if (float* const to = table_grad_of(sums_, table, sums_.axis_on_query, head(g))) {
        const float* const x = put_rows(rows, g);
        add_product<Sum::kAdded>(!all_finite(x, rows.rows * columns), table.count, table.columns16,
                                 rows.rows, LeftColumns{w_.axis_scratch, count},
                                 RightRows{x, columns}, to, table.columns16);
      }
      if (!wants_rows()) return;
      std::fill_n(w_.table_grads, rows.rows * columns, 0.0F);
      add_product<Sum::kAdded>(!table.all_finite(head(g), {0, table.count}), rows.rows,
                               table.columns16, table.count, LeftRows{w_.axis_scratch, count},
                               RightRows{table.row(head(g), 0), table.columns16}, w_.table_grads,
                               columns);
      add_rows(g, rows, query_sums);
    });
    clear_axes();
  }

  // Adds the gradients of a tile's rows of r, and those of the A of frames that they meet.
  void add_gradients(const Tile& t, const FrameRows& rows, int64_t g, float* query_sums) const {
    const int64_t columns = p_.table_query16;
    std::fill_n(w_.table_grads, t.rows() * columns, 0.0F);
    collect_table(t, p_.on_query, lines(), {w_.table_queries, columns}, w_.table_products,
                  table_grad_of(sums_, p_.on_query, sums_.on_query, t.head),
                  wants_rows() ? w_.table_grads : nullptr, columns);
    if (wants_rows()) add_rows(g, rows, query_sums);
  }

 private:
  int64_t head(int64_t g) const { return task_.key_head * p_.group + g; }
  // The first row of queries in sums of the task.
  int64_t row(int64_t g, const FrameRows& rows) const { return g * p_.score.q.rows + rows.row(); }
  int64_t place(int64_t g, const FrameRows& rows) const { return row(g, rows) * p_.axis_columns; }
  // The gradients of products with A: those of scores if it meets r, and of p otherwise.
  const float* lines() const { return has_r() ? w_.score_grads : w_.grads; }

  // Calls f(rows of queries, their index in the group) for all queries of the task.
  template <class F>
  void each_block(F&& f) const {
    const auto batch = static_cast<size_t>(task_.batch);
    for (size_t n = p_.blocks_of_batch[batch]; n < p_.blocks_of_batch[batch + 1]; ++n) {
      const BatchFrame& block = p_.blocks[n];
      for (int64_t g = 0; g < p_.group; ++g)
        for (int64_t first = 0; first < block.frame.queries; first += kQueryBlock)
          f(FrameRows{p_, block, Side::kQuery, first,
                      std::min(kQueryBlock, block.frame.queries - first)},
            g);
    }
  }

  void clear_axes() const {
    std::fill_n(w_.axis_grads, p_.group * p_.score.q.rows * p_.axis_columns, 0.0F);
  }
  bool wants_rows() const {
    return static_cast<bool>(has_r() ? backward_.grad.table_query : backward_.grad.q);
  }
  // Adds table_grads to the sums of r or q.
  void add_rows(int64_t g, const FrameRows& rows, float* query_sums) const {
    const int64_t columns = p_.table_columns16();
    add_scaled(rows.rows * columns, has_r() ? 1 : p_.scale, w_.table_grads,
               query_sums + (has_r() ? backward_.table_query_sums() : 0) + row(g, rows) * columns);
  }

  const Backward& backward_;
  const Problem& p_;
  const TableSums& sums_;
  const BackwardTask& task_;
  BackwardScratch& w_;
};

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
