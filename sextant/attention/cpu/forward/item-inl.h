// The state of one forward item: some queries of all heads that share a key head, and their running
// softmax. The three strategies that fill it are strips-inl.h (any score), amx-inl.h (products by
// tiles of AMX) and decode-inl.h (few queries, all heads at once).
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_ITEM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_ITEM_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_ITEM_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_ITEM_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <vector>

#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/score/scores-inl.h"
#include "sextant/attention/cpu/tile/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

class ForwardTask {
 public:
  ForwardTask(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch)
      : forward_(forward),
        p_(forward.problem),
        item_(item),
        block_(p_.blocks[item.block]),
        w_(scratch) {}

  // Merges the units of an item that was cut, in their order.
  void merge_units() {
    std::fill_n(w_.fresh, p_.group * strips(), uint8_t{1});
    for (int64_t g = 0; g < p_.group; ++g) {
      for (int64_t unit = item_.units.first; unit < item_.units.last; ++unit)
        for (int64_t strip = 0; strip < strips(); ++strip) take(g, strip, partial(unit, g, strip));
      finish(g);
    }
  }

 protected:
  int64_t strips() const { return (item_.rows + kStrip - 1) / kStrip; }
  int64_t strip_rows(int64_t strip) const { return std::min(kStrip, item_.rows - strip * kStrip); }
  int64_t head(int64_t g) const { return item_.key_head * p_.group + g; }
  bool cut() const { return item_.partial >= 0; }
  KeyRange keys_of(int64_t unit) const {
    return {unit * p_.unit, std::min((unit + 1) * p_.unit, block_.frame.keys)};
  }
  FrameRows key_rows_of(KeyRange keys) const {
    return {p_, block_, Side::kKey, keys.first, keys.last - keys.first};
  }

  void prepare_queries() {
    const FrameRows rows = {p_, block_, Side::kQuery, item_.first, item_.rows};
    for (int64_t g = 0; g < p_.group; ++g) {
      const auto n = static_cast<size_t>(g);
      pack_rows(rows, p_.score.q, head(g), p_.scale, w_.heads[n]);
      if (p_.score.q_imag) pack_rows(rows, p_.score.q_imag, head(g), p_.scale, w_.imaginary[n]);
      if (p_.table_query16 > 0) pack_table_queries(rows, g);
      if (w_.query_products)
        multiply_queries(p_, p_.on_query, head(g), item_.rows, of_tables(g), query_products(g));
      if (w_.axis_products) multiply_axes(rows, g);
    }
    w_.visibility.look(block_, item_.first, item_.rows);
    std::fill_n(w_.fresh, p_.group * strips(), uint8_t{1});
  }

  // The rows of r in panels.
  void pack_table_queries(const FrameRows& rows, int64_t g) {
    const HostRows<float> r = rows_of(p_.score.table_query);
    for (int64_t i = 0; i < rows.rows; i += kLanes)
      pack_panel_of(rows, r, head(g), i, std::min(kLanes, rows.rows - i), 1,
                    w_.table_queries + (g * w_.rows16 + i) * p_.table_query16);
  }
  // q . A or r . A of the axes, for each position of a key.
  void multiply_axes(const FrameRows& rows, int64_t g) {
    multiply_queries(p_, p_.axis_on_query, head(g), item_.rows, of_tables(g), w_.axis_scratch);
    spread_products(p_, block_.frame.batch, rows.row(), item_.rows, w_.axis_scratch,
                    w_.axis_products + g * w_.rows16 * p_.axis_columns);
  }

  // Writes the results of an item that has all of its units.
  void finish_heads() {
    for (int64_t g = 0; g < p_.group && !cut(); ++g) finish(g);
  }

  // No query sees the unit. Only an item that was cut has to say so.
  void clear_unit(int64_t unit) const {
    for (int64_t g = 0; g < p_.group && cut(); ++g)
      for (int64_t strip = 0; strip < strips(); ++strip)
        clear(strip_rows(strip), p_.width16, partial(unit, g, strip));
  }

  // The rows of a head that meet A, in panels.
  const float* of_tables(int64_t g) const {
    return p_.table_query16 > 0 ? w_.table_queries + g * w_.rows16 * p_.table_query16
                                : w_.heads[static_cast<size_t>(g)].plain;
  }
  const float* axis_products(int64_t g) const {
    return w_.axis_products ? w_.axis_products + g * w_.rows16 * p_.axis_columns : nullptr;
  }

  // q . A of a head's queries with all rows of a short A; or null.
  float* query_products(int64_t g) const {
    return w_.query_products ? w_.query_products + g * w_.rows16 * p_.on_query.count16 : nullptr;
  }

  // Heads that are decoded together lie one after the other without padding.
  SoftmaxState all(int64_t g, int64_t strip) const {
    const int64_t rows = w_.grouped.rows16 > 0 ? item_.rows : w_.rows16;
    return w_.all.at(g * rows + strip * kStrip, p_.width16);
  }
  SoftmaxState partial(int64_t unit, int64_t g, int64_t strip) const {
    return forward_.partial(item_, unit, g * strips() + strip);
  }
  uint8_t& fresh(int64_t g, int64_t strip) const { return w_.fresh[g * strips() + strip]; }

  void copy(int64_t rows, const SoftmaxState& from, const SoftmaxState& to) const {
    std::copy_n(from.row_max, rows, to.row_max);
    std::copy_n(from.row_sum, rows, to.row_sum);
    std::copy_n(from.out, rows * p_.width16, to.out);
  }

  // Merges one strip's part, unless none of its queries saw a key.
  void take(int64_t g, int64_t strip, const SoftmaxState& part) {
    const int64_t rows = strip_rows(strip);
    if (std::all_of(part.row_sum, part.row_sum + rows, [](float sum) { return sum == 0; })) return;
    if (fresh(g, strip))
      copy(rows, part, all(g, strip));
    else
      merge(rows, p_.width16, part, all(g, strip));
    fresh(g, strip) = 0;
  }

 private:
  void finish(int64_t g) {
    const HostAttended<float>& to = forward_.result;
    const int64_t b = block_.frame.batch, h = head(g);
    const auto kept_factor = static_cast<float>(p_.score.dropout.kept_factor());
    for (int64_t i = 0; i < item_.rows; ++i) {
      const bool nothing = fresh(g, i / kStrip) != 0;
      const SoftmaxState row = all(g, 0).at(i, p_.width16);
      float row_max = nothing ? -kInfinity : *row.row_max, sum = nothing ? 0 : *row.row_sum,
            keep = 1;
      const int64_t query = block_.frame.query_row + item_.first + i;
      if (p_.score.query_sink || !p_.score.sink.empty()) {
        const auto sink =
            static_cast<float>(sink_of(p_.score, b, h, query) - p_.origins.at(b, h, query));
        const float both = std::max(row_max, sink);
        keep = std::exp(row_max - base_of(both));
        sum = sum * keep + std::exp(sink - base_of(both));
        row_max = both;
      }
      to.lse(b, h, query, 0) = sum == 0 ? -kInfinity : row_max + std::log(sum);
      if (nothing || sum == 0) std::fill_n(row.out, p_.width16, 0.0F);
      const Lanes factor = set(sum == 0 ? 0 : keep / sum * kept_factor);
      for (int64_t c = 0; c < p_.width16; c += kLanes)
        store(mul(factor, load(row.out + c)), row.out + c);
    }
    write_rows(all(g, 0).out, p_.width16, to.out, b, h, block_.frame.query_row + item_.first,
               item_.rows);
  }

 protected:
  const Forward& forward_;
  const Problem& p_;
  const ForwardItem& item_;
  const BatchFrame& block_;
  ForwardScratch& w_;
};

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
