// The forward strategy for many queries on machines with AMX: its tiles multiply while vectors make
// weights. Units and heads with values that bfloat16 terms cannot hold go strip by strip.
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_AMX_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_AMX_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_AMX_INL_H_
#endif

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/attention/cpu/forward/strips-inl.h"
#include "sextant/attention/cpu/tile/bf16x3-inl.h"
#include "sextant/base/simd/amx.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

class ForwardByAmx : public ForwardByStrips {
 public:
  using ForwardByStrips::ForwardByStrips;

  void attend() {
    prepare_queries();
    heads_fit_.assign(static_cast<size_t>(p_.group), 0);
    for (size_t n = 0; n < heads_fit_.size(); ++n)
      heads_fit_[n] = in_terms(w_.heads[n], Side::kQuery, item_.rows, kAllRotations) ? 1 : 0;
    const amx::Tiles tiles;
    each_unit([&](int64_t unit, const FrameRows& rows, const KeyTile& keys, KeyRange seen,
                  const Values& values, const auto& value_rows) HWY_ATTR {
      const bool fit = put_in_terms(rows, values.rows);
      for (int64_t g = 0; g < p_.group; ++g) {
        const QueryTile queries = prepare_head(unit, g, keys, seen);
        if (fit && queries_fit(g, keys.keys))
          attend_groups(unit, g, queries, keys, value_rows);
        else
          attend_head(unit, g, queries, keys, values, value_rows);
      }
    });
    finish_heads();
  }

 private:
  // Up to kAmxRows queries with a unit of keys.
  struct Group {
    int64_t first, last;  // strips
    KeyRange columns;     // the hull of what they see, in multiples of amx::kDepth
    bool fresh;           // no strip has a result yet, so this one goes where all is merged
    SoftmaxState to;
    float* const* products;
    float *scores, *weights;

    int64_t row(int64_t strip) const { return (strip - first) * kStrip; }
  };

  // Calls f with the number of terms as an integral_constant.
  template <class F>
  auto with_terms(F&& f) const {
    return p_.terms == 1 ? f(std::integral_constant<int, 1>())
                         : f(std::integral_constant<int, 3>());
  }

  bool in_terms(const Panels& panels, Side side, int64_t rows, RotationsSeen rotations) const {
    return with_terms([&](auto terms) HWY_ATTR {
      return split_panels<terms()>(panels, side, rows, p_.depth16, rotations,
                                   p_.rotations.list.size());
    });
  }

  // Splits the unit's keys and values into terms; false if some values do not fit.
  bool put_in_terms(const FrameRows& rows, Matrix values) {
    const bool keys_fit =
        in_terms(w_.keys, Side::kKey, rows.rows,
                 w_.visibility.rotations_seen(0, strips(), {rows.first, rows.first + rows.rows}));
    return with_terms([&](auto terms) HWY_ATTR {
      const Fit fit = pair_lines<terms()>(
          rows.rows, p_.width16, w_.tiled.values, p_.width16, w_.tiled.value_step,
          [&](int64_t j) HWY_ATTR { return values.data + j * values.stride; });
      return keys_fit && (terms() == 1 || fit.all());
    });
  }

  // Queries with growth are split for each unit.
  bool queries_fit(int64_t g, KeyRange keys) const {
    if (w_.grown.empty()) return heads_fit_[static_cast<size_t>(g)] != 0;
    return in_terms(w_.grown[0], Side::kQuery, item_.rows,
                    w_.visibility.rotations_seen(0, strips(), keys));
  }
  const Panels& queries_in_terms(int64_t g) const {
    return w_.grown.empty() ? w_.heads[static_cast<size_t>(g)] : w_.grown[0];
  }

  // The group of the strips from `first` on, or a later one if these see no key. n: the number of
  // groups before it.
  std::optional<Group> group_from(int64_t first, int64_t n, int64_t g, KeyRange keys) const {
    for (int64_t last; first < strips(); first = last) {
      last = std::min(first + kAmxRows / kStrip, strips());
      KeyRange seen;
      bool is_fresh = !cut();
      for (int64_t strip = first; strip < last; ++strip) {
        seen = hull(seen, w_.visibility.hull_keys_in(strip, keys));
        is_fresh = is_fresh && fresh(g, strip);
      }
      if (empty(seen)) continue;
      const Tiled& tiled = w_.tiled;
      const auto scores = n % Tiled::kScores, weights = n % Tiled::kWeights;
      return Group{first,
                   last,
                   {round_down(seen.first - keys.first, amx::kDepth),
                    round_up(seen.last - keys.first, amx::kDepth)},
                   is_fresh,
                   is_fresh ? all(g, first) : tiled.units[weights],
                   tiled.products[scores],
                   tiled.scores[scores],
                   tiled.weights[weights]};
    }
    return {};
  }

  // Does the work of attend_head() a group at a time. While weights of one group are made, values
  // are weighted for the group before and scores multiplied for the one after.
  template <class ValueRows>
  void attend_groups(int64_t unit, int64_t g, const QueryTile& queries, const KeyTile& keys,
                     const ValueRows& value_rows) {
    amx::TileQueue pieces;
    int64_t n = 0;
    std::optional<Group> before, now = group_from(0, n, g, keys.keys), next;
    if (now) add_scores(*now, g, keys.keys, pieces);
    pieces.multiply_all();
    for (; now; before = now, now = next) {
      next = group_from(now->last, ++n, g, keys.keys);
      if (before) add_weighted_values(*before, pieces);
      if (next) add_scores(*next, g, keys.keys, pieces);
      softmax_group(*now, g, queries, keys, pieces);
      pieces.multiply_all();
      if (before) finish_group(*before, unit, g, queries, keys, value_rows);
    }
    if (before) {
      add_weighted_values(*before, pieces);
      pieces.multiply_all();
      finish_group(*before, unit, g, queries, keys, value_rows);
    }
    for (int64_t strip = 0; cut() && strip < strips(); ++strip)
      if (empty(w_.visibility.hull_keys_in(strip, keys.keys)))
        clear(strip_rows(strip), p_.width16, partial(unit, g, strip));
  }

  // Calls f(strip, its number, the scores of its first query) for each strip that sees any key.
  template <class F>
  void each_strip(const Group& group, int64_t g, const QueryTile& queries, const KeyTile& keys,
                  F&& f) const {
    for (int64_t n = group.first; n < group.last; ++n) {
      Strip strip = strip_of(n, g, queries, keys);
      if (empty(strip.columns)) continue;
      strip.products = group.products;
      strip.product_row = group.row(n);
      f(strip, n, group.scores + group.row(n) * kScoreStride);
    }
  }

  void softmax_group(const Group& group, int64_t g, const QueryTile& queries, const KeyTile& keys,
                     amx::TileQueue& pieces) const {
    const int64_t calls = (group.last - group.first) * kStrip *
                          calls_of_row(group.columns.last - group.columns.first);
    pieces.share(calls);
    const auto meanwhile = [&] { pieces.multiply_share(); };
    each_strip(group, g, queries, keys, [&](const Strip& strip, int64_t n, float* lines) HWY_ATTR {
      const SoftmaxState to = group.to.at(group.row(n), p_.width16);
      score_strip(strip, {w_.second, w_.table_products}, {lines, lines, w_.strip.imaginary});
      with_dropout(strip, to.row_sum, [&](auto& keep) HWY_ATTR {
        with_terms([&](auto terms) HWY_ATTR {
          softmax_terms<terms()>(strip.rows, strip.columns, group.columns, lines, to.row_max,
                                 group.weights + group.row(n) * kPairStride, w_.tiled.weight_step,
                                 keep, meanwhile);
        });
      });
    });
  }

  template <class ValueRows>
  void finish_group(const Group& group, int64_t unit, int64_t g, const QueryTile& queries,
                    const KeyTile& keys, const ValueRows& value_rows) {
    each_strip(group, g, queries, keys, [&](const Strip& strip, int64_t n, float* lines) HWY_ATTR {
      const SoftmaxState part = group.to.at(group.row(n), p_.width16);
      float kept[kStrip];
      float* const totals = p_.score.dropout ? kept : part.row_sum;
      for (int64_t i = 0; i < strip.rows; ++i)
        totals[i] = w_.tiled.totals[(group.row(n) + i) * amx::TileQueue::kTotals];
      if (p_.terms == 1)
        finish_rounded_pv(strip, lines, value_rows, w_.table_products, part.out, totals);
      else
        finish_pv(strip, lines, value_rows, w_.table_products, part.out, totals);
      if (cut())
        copy(strip.rows, part, partial(unit, g, n));
      else if (!group.fresh && fresh(g, n))
        copy(strip.rows, part, all(g, n));
      else if (!group.fresh)
        merge(strip.rows, p_.width16, part, all(g, n));
      fresh(g, n) = 0;
    });
  }

  // Row tiles of a group.
  int64_t row_blocks(const Group& group) const {
    return std::min(kAmxRows, round_up(item_.rows, kLanes) - group.first * kStrip) / kLanes;
  }

  // Adds q k^T to the queue, in the rotations that are seen.
  void add_scores(const Group& group, int64_t g, KeyRange keys, amx::TileQueue& to) const {
    const Panels& left = queries_in_terms(g);
    const int64_t pairs = amx::paired(p_.depth16);
    const auto [first, last] = group.columns;
    const RotationsSeen rotations = w_.visibility.rotations_seen(group.first, group.last, keys);
    for (size_t rotation = 0; rotation < p_.rotations.list.size(); ++rotation)
      if (rotations.has(rotation))
        to.add(
            {p_.terms,
             row_blocks(group),
             (last - first) / kLanes,
             2 * pairs / amx::kDepth,
             {left.terms[rotation] + group.first * kStrip * pairs, left.term_step, pairs},
             {w_.keys.terms[rotation] + first * pairs, w_.keys.term_step, kLanes, kLanes * pairs},
             group.products[rotation] + first,
             kScoreStride,
             false});
  }

  // Adds p v and the row sums of p to the queue.
  void add_weighted_values(const Group& group, amx::TileQueue& to) const {
    const auto [first, last] = group.columns;
    const Tiled& tiled = w_.tiled;
    const amx::Product product = {
        p_.terms,
        row_blocks(group),
        p_.width16 / kLanes,
        (last - first) / amx::kDepth,
        {group.weights + first / 2, tiled.weight_step, kPairStride},
        {tiled.values + first / 2 * p_.width16, tiled.value_step, p_.width16, kLanes},
        group.to.out,
        p_.width16,
        false};
    to.add(product);
    to.add_totals(product, tiled.totals);
  }

  std::vector<uint8_t> heads_fit_;  // [group]: whether the head's queries fit into terms
};

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
