// The forward strategy for few queries (decoding): all heads of a group at once, so that each row
// of the cache is read once. It is bound by memory.
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_DECODE_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_DECODE_INL_H_
#endif

#include <algorithm>
#include <vector>

#include "sextant/attention/cpu/forward/decode_pv-inl.h"
#include "sextant/attention/cpu/forward/decode_qk-inl.h"
#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/attention/cpu/forward/item-inl.h"
#include "sextant/attention/cpu/forward/weighted_values-inl.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/score/scores-inl.h"
#include "sextant/attention/cpu/tile/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

class ForwardDecode : public ForwardTask {
 public:
  using ForwardTask::ForwardTask;

  void attend() {
    prepare_queries();
    join_queries();
    for (int64_t unit = item_.units.first; unit < item_.units.last; ++unit) {
      const KeyRange seen = w_.visibility.hull_keys_in(0, keys_of(unit));
      if (empty(seen))
        clear_unit(unit);
      else
        attend_unit(unit, key_rows_of(keys_of(unit)), seen);
    }
    finish_heads();
  }

 private:
  // Brings the queries of each head from its panels into those of the group.
  void join_queries() const {
    const int64_t rows = item_.rows;
    for (size_t rotation = 0; rotation < p_.rotations.list.size(); ++rotation) {
      float* const panels = w_.grouped.queries[rotation];
      std::fill_n(panels, w_.grouped.rows16 * p_.depth16, 0.0F);
      for (int64_t n = 0; n < p_.group * rows; ++n) {
        const float* from = w_.heads[static_cast<size_t>(n / rows)].rotated[rotation] + n % rows;
        float* row = panels + round_down(n, kLanes) * p_.depth16 + n % kLanes;
        for (int64_t c = 0; c < p_.depth; ++c) row[c * kLanes] = from[c * kLanes];
      }
    }
  }

  // Calls f(strip, its scores, its state) for each head.
  template <class F>
  void each_head(const KeyTile& keys, KeyRange columns, F&& f) const {
    for (int64_t g = 0; g < p_.group; ++g) {
      const int64_t row = g * item_.rows;
      const QueryTile queries = {.block = &block_,
                                 .head = head(g),
                                 .first = item_.first,
                                 .rows = item_.rows,
                                 .rotated = w_.heads[static_cast<size_t>(g)].rotated,
                                 .of_tables = of_tables(g),
                                 .axis_products = axis_products(g)};
      const Strip strip = {p_,
                           w_.visibility,
                           queries,
                           keys,
                           0,
                           item_.rows,
                           columns,
                           w_.key_products,
                           query_products(g),
                           w_.grouped.products,
                           row};
      f(strip, w_.grouped.weights + row * kScoreStride, w_.grouped.unit.at(row, p_.width16));
    }
  }

  void attend_unit(int64_t unit, const FrameRows& rows, KeyRange seen) {
    const GroupedQueries& grouped = w_.grouped;
    const KeyTile keys = {.keys = {rows.first, rows.first + rows.rows}};
    const KeyRange columns = columns_of(seen, keys.keys);
    const KeyRange mixed = {seen.first - keys.keys.first, seen.last - keys.keys.first};
    const int64_t all_rows = p_.group * item_.rows;
    const KeyRange read = w_.visibility.hull_keys_in(0, {0, item_.units.last * p_.unit});
    const DecodeUnit decode_unit = {rows, item_.key_head, mixed, read.last - rows.first,
                                    rows_at_once(p_.score, all_rows)};
    multiply_grouped(decode_unit, columns, all_rows, w_.visibility.rotations_seen(0, 1, keys.keys),
                     w_.keys, grouped);
    const bool scored =
        scores_are_products(p_) && rows.rows % kLanes == 0 && w_.visibility.sees_all(0, keys.keys);
    if (!scored)
      each_head(keys, columns, [&](const Strip& strip, float* lines, const SoftmaxState&) HWY_ATTR {
        score_strip(strip, {w_.second, w_.table_products}, {lines, lines, nullptr});
      });
    KeepAll keep;
    for (int64_t row = 0; row < all_rows; row += kStrip)
      softmax_strip(std::min(kStrip, all_rows - row), columns, grouped.weights + row * kScoreStride,
                    grouped.unit.row_max + row, grouped.weight_panels + row * kUnit, keep);
    decode_pv(decode_unit, mixed, all_rows, w_.values, grouped);
    const auto values = [&]() HWY_ATTR {
      return whole_rows(rows, p_.score.v, item_.key_head, w_.values);
    };
    if (p_.on_value || !all_finite(grouped.unit.out, all_rows * p_.width16))
      each_head(keys, columns,
                [&](const Strip& strip, float* lines, const SoftmaxState& part) HWY_ATTR {
                  finish_pv(strip, lines, values, w_.table_products, part.out, part.row_sum);
                });
    take_unit(unit, all_rows);
  }

  // Merges the unit: all heads at once, or head by head where some see none of its keys.
  void take_unit(int64_t unit, int64_t all_rows) {
    const SoftmaxState& part = w_.grouped.unit;
    if (cut()) {
      for (int64_t g = 0; g < p_.group; ++g)
        copy(item_.rows, part.at(g * item_.rows, p_.width16), partial(unit, g, 0));
      return;
    }
    const bool alike = std::all_of(w_.fresh, w_.fresh + p_.group,
                                   [&](uint8_t fresh) { return fresh == *w_.fresh; });
    if (!alike ||
        std::find(part.row_sum, part.row_sum + all_rows, 0.0F) != part.row_sum + all_rows) {
      for (int64_t g = 0; g < p_.group; ++g) take(g, 0, part.at(g * item_.rows, p_.width16));
      return;
    }
    for (int64_t row = 0; row < all_rows; row += kLanes) {
      const int64_t some = std::min(kLanes, all_rows - row);
      const SoftmaxState from = part.at(row, p_.width16), to = w_.all.at(row, p_.width16);
      if (*w_.fresh != 0)
        copy(some, from, to);
      else
        merge(some, p_.width16, from, to);
    }
    std::fill_n(w_.fresh, p_.group, uint8_t{0});
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
