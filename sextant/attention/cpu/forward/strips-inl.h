// Attention of one item: some queries of all heads that share a key head, unit by unit of keys.
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_STRIPS_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_STRIPS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_STRIPS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

#include "sextant/attention/cpu/forward/decode-inl.h"
#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/score/scores-inl.h"
#include "sextant/attention/cpu/tile/bf16x3-inl.h"
#include "sextant/attention/cpu/tile/softmax-inl.h"
#include "sextant/attention/cpu/tile/weighted_values-inl.h"
#include "sextant/base/simd/amx.h"

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

  void attend() {
    prepare_queries();
    w_.visibility.look(block_, item_.first, item_.rows);
    std::fill_n(w_.fresh, p_.group * strips(), uint8_t{1});
    if (grouped()) join_queries(p_, item_.rows, w_.heads, w_.grouped);
    attend_units();
    if (item_.partial >= 0) return;
    for (int64_t g = 0; g < p_.group; ++g) finish(g);
  }

  // The other half of an item whose units were cut: merges them in their order.
  void merge_units() {
    std::fill_n(w_.fresh, p_.group * strips(), uint8_t{1});
    for (int64_t g = 0; g < p_.group; ++g) {
      for (int64_t unit = item_.units.first; unit < item_.units.last; ++unit)
        for (int64_t strip = 0; strip < strips(); ++strip) take(g, strip, partial(unit, g, strip));
      finish(g);
    }
  }

 private:
  void attend_units() {
    std::optional<amx::Tiles> tiles;
    if (tiled()) tiles.emplace();
    for (int64_t unit = item_.units.first; unit < item_.units.last; ++unit) attend_unit(unit);
  }

  int64_t strips() const { return (item_.rows + kStrip - 1) / kStrip; }
  int64_t strip_rows(int64_t strip) const { return std::min(kStrip, item_.rows - strip * kStrip); }
  bool grouped() const { return w_.grouped.rows16 > 0; }
  bool tiled() const { return p_.terms > 0 && !grouped() && item_.rows > kStrip; }
  // f(an integral_constant of the parts).
  template <class F>
  auto with_terms(F&& f) const {
    return p_.terms == 1 ? f(std::integral_constant<int, 1>())
                         : f(std::integral_constant<int, 3>());
  }
  int64_t head(int64_t g) const { return item_.key_head * p_.group + g; }

  void prepare_queries() {
    const FrameRows rows = {p_, block_, Side::kQuery, item_.first, item_.rows};
    for (int64_t g = 0; g < p_.group; ++g) {
      const auto n = static_cast<size_t>(g);
      pack_rows(rows, p_.score.q, head(g), p_.scale, w_.heads[n]);
      if (p_.score.q_imag) pack_rows(rows, p_.score.q_imag, head(g), p_.scale, w_.imaginary[n]);
      if (w_.query_products)
        multiply_queries(p_, head(g), item_.rows, w_.heads[n].plain, all_query_products(g));
    }
    if (w_.query_panels) std::fill_n(w_.query_panel_rows, p_.group * strips(), -1);
    heads_fit_.assign(static_cast<size_t>(p_.group), 0);
    for (size_t n = 0; tiled() && n < heads_fit_.size(); ++n)
      heads_fit_[n] = in_terms(w_.heads[n], Side::kQuery, item_.rows, kAllRotations) ? 1 : 0;
  }

  bool in_terms(const Panels& panels, Side side, int64_t rows, RotationsSeen rotations) const {
    return with_terms([&](auto terms) HWY_ATTR {
      return split_panels<terms()>(panels, side, rows, p_.depth16, rotations,
                                   p_.rotations.list.size());
    });
  }

  void attend_unit(int64_t unit) {
    const KeyRange keys = {unit * p_.unit, std::min((unit + 1) * p_.unit, block_.frame.keys)};
    const KeyRange seen =
        grouped() ? w_.visibility.hull_keys_in(0, keys) : intersect(w_.visibility.all(), keys);
    if (empty(seen)) {
      if (item_.partial >= 0)
        for (int64_t g = 0; g < p_.group; ++g)
          for (int64_t strip = 0; strip < strips(); ++strip)
            clear(strip_rows(strip), p_.width16, partial(unit, g, strip));
      return;
    }
    const FrameRows rows = {p_, block_, Side::kKey, keys.first, keys.last - keys.first};
    if (grouped()) return attend_decode(unit, rows, seen);
    pack_rows(rows, p_.score.k, item_.key_head, 1, w_.keys,
              w_.visibility.rotations_seen(0, strips(), keys));
    const KeyTile tile = {keys, w_.keys.plain, w_.keys.factors()};
    const Values values = values_of(rows);
    const bool fit = tiled() && put_in_terms(rows, values.rows);
    const auto value_rows = [&]() HWY_ATTR {
      return values.rows.data ? values.rows
                              : whole_rows(rows, p_.score.v, item_.key_head, w_.values);
    };
    for (int64_t g = 0; g < p_.group; ++g)
      attend_head(unit, g, tile, fit, seen, values, value_rows);
  }

  // The unit's keys and values for tiles of AMX; false if some do not fit.
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

  Values values_of(const FrameRows& rows) {
    const AnyView<const float>& v = p_.score.v;
    if (!p_.pairs) {
      // A copy is worth it for those who read it more than once.
      const auto rows_of = p_.group * item_.rows > kStrip ? near_rows : whole_rows;
      return {rows_of(rows, v, item_.key_head, w_.values)};
    }
    for (int64_t i = 0, count; i < rows.rows; i += count) {
      count = rows.together(i);
      float* const to = w_.value_pairs + i / 2 * p_.width16;
      if (has_whole_rows(v)) {
        with_type(v.format, rows.at(v, item_.key_head, i), [&](const auto* from) HWY_ATTR {
          pair_rows(from, v.row_stride, count, p_.width16, to);
        });
      } else {
        copy_some(rows, v, item_.key_head, {i, i + count}, w_.values);
        pair_rows(w_.values, p_.width16, count, p_.width16, to);
      }
    }
    return {{}, w_.value_pairs};
  }

  // keys_fit: they and their values lie in parts.
  template <class ValueRows>
  void attend_head(int64_t unit, int64_t g, const KeyTile& keys, bool keys_fit, KeyRange seen,
                   const Values& values, const ValueRows& value_rows) {
    const QueryTile queries = {.block = &block_,
                               .head = head(g),
                               .first = item_.first,
                               .rows = item_.rows,
                               .plain = w_.heads[static_cast<size_t>(g)].plain,
                               .rotated = rotated(unit, g, w_.heads, w_.grown),
                               .imaginary = p_.score.q_imag
                                                ? rotated(unit, g, w_.imaginary, w_.grown_imaginary)
                                                : nullptr};
    if (p_.on_key && (g == 0 || p_.on_key.heads > 1))
      multiply_keys(p_, queries, keys, columns_of(seen, keys.keys), w_.table_products,
                    w_.key_products);
    if (keys_fit && queries_fit(g, keys.keys))
      return attend_groups(unit, g, queries, keys, value_rows);
    for (int64_t n = 0; n < strips(); ++n) {
      const KeyRange strip_seen = w_.visibility.hull_keys_in(n, keys.keys);
      const bool cut = item_.partial >= 0;
      if (empty(strip_seen)) {
        if (cut) clear(strip_rows(n), p_.width16, partial(unit, g, n));
        continue;
      }
      const Strip strip = strip_of(n, g, queries, keys);
      uint8_t& fresh = w_.fresh[g * strips() + n];
      const SoftmaxState to = cut ? partial(unit, g, n) : fresh ? all(g, n) : w_.unit;
      LeftOut left_out;
      score_strip(strip, {w_.second, w_.table_products}, w_.strip, &left_out);
      if (p_.pairs)
        with_dots(p_.dots, [&](auto dots) HWY_ATTR {
          softmax_pairs<dots()>(strip.rows, strip.columns, w_.strip.scores, to.row_max, w_.weights);
        });
      else
        softmax_strip(strip.rows, strip.columns, w_.strip.scores, to.row_max, w_.weights);
      left_out.add(strip.rows, to.row_max);
      const KeyRange mixed = {strip_seen.first - keys.keys.first,
                              strip_seen.last - keys.keys.first};
      multiply_pv(strip, w_.strip.scores, w_.weights, mixed, values, value_rows, w_.table_products,
                  to.out, to.row_sum);
      if (!cut && !fresh) merge(strip.rows, p_.width16, to, all(g, n));
      fresh = 0;
    }
  }

  // Of keys that some of its queries see.
  Strip strip_of(int64_t n, int64_t g, const QueryTile& queries, const KeyTile& keys) const {
    return {p_,
            w_.visibility,
            queries,
            keys,
            n * kStrip,
            strip_rows(n),
            columns_of(w_.visibility.hull_keys_in(n, keys.keys), keys.keys),
            w_.key_products,
            query_products(g)};
  }

  // Queries that grow are in parts for this unit only.
  bool queries_fit(int64_t g, KeyRange keys) const {
    if (w_.grown.empty()) return heads_fit_[static_cast<size_t>(g)] != 0;
    return in_terms(w_.grown[0], Side::kQuery, item_.rows,
                    w_.visibility.rotations_seen(0, strips(), keys));
  }
  const Panels& queries_in_terms(int64_t g) const {
    return w_.grown.empty() ? w_.heads[static_cast<size_t>(g)] : w_.grown[0];
  }

  // Up to kAmxRows queries with a unit of keys, by tiles of AMX.
  struct Group {
    int64_t first, last;  // strips
    KeyRange columns;     // that any of them sees, multiples of amx::kDepth
    bool fresh;           // nothing is known of any, so that this goes where all is merged
    SoftmaxState to;
    float* const* products;
    float *scores, *weights;

    int64_t row(int64_t strip) const { return (strip - first) * kStrip; }
  };

  // The group of the strips from `first` on, or of later ones if those see nothing. n: how many
  // there were before.
  std::optional<Group> group_from(int64_t first, int64_t n, int64_t g, KeyRange keys) const {
    for (int64_t last; first < strips(); first = last) {
      last = std::min(first + kAmxRows / kStrip, strips());
      KeyRange seen;
      bool fresh = item_.partial < 0;
      for (int64_t strip = first; strip < last; ++strip) {
        seen = hull(seen, w_.visibility.hull_keys_in(strip, keys));
        fresh = fresh && w_.fresh[g * strips() + strip];
      }
      if (empty(seen)) continue;
      const Tiled& tiled = w_.tiled;
      const auto scores = n % Tiled::kScores, weights = n % Tiled::kWeights;
      return Group{first,
                   last,
                   {round_down(seen.first - keys.first, amx::kDepth),
                    round_up(seen.last - keys.first, amx::kDepth)},
                   fresh,
                   fresh ? all(g, first) : tiled.units[weights],
                   tiled.products[scores],
                   tiled.scores[scores],
                   tiled.weights[weights]};
    }
    return {};
  }

  // As attend_head(), a group at a time. While weights of one are made, those before are mixed and
  // those after scored.
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
      if (before) add_mixing(*before, pieces);
      if (next) add_scores(*next, g, keys.keys, pieces);
      soften_group(*now, g, queries, keys, pieces);
      pieces.multiply_all();
      if (before) finish_group(*before, unit, g, queries, keys, value_rows);
    }
    if (before) {
      add_mixing(*before, pieces);
      pieces.multiply_all();
      finish_group(*before, unit, g, queries, keys, value_rows);
    }
    for (int64_t strip = 0; item_.partial >= 0 && strip < strips(); ++strip)
      if (empty(w_.visibility.hull_keys_in(strip, keys.keys)))
        clear(strip_rows(strip), p_.width16, partial(unit, g, strip));
  }

  // f(strip, its number, where the scores of its first query are) for each that sees any keys.
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

  void soften_group(const Group& group, int64_t g, const QueryTile& queries, const KeyTile& keys,
                    amx::TileQueue& pieces) const {
    const int64_t calls = (group.last - group.first) * kStrip *
                          calls_of_row(group.columns.last - group.columns.first);
    pieces.share(calls);
    const auto meanwhile = [&] { pieces.multiply_share(); };
    each_strip(group, g, queries, keys, [&](const Strip& strip, int64_t n, float* lines) HWY_ATTR {
      const SoftmaxState to = group.to.at(group.row(n), p_.width16);
      LeftOut left_out;
      score_strip(strip, {w_.second, w_.table_products}, {lines, lines, w_.strip.imaginary},
                  &left_out);
      with_terms([&](auto terms) HWY_ATTR {
        softmax_terms<terms()>(strip.rows, strip.columns, group.columns, lines, to.row_max,
                               group.weights + group.row(n) * kPairStride, w_.tiled.weight_step,
                               meanwhile);
      });
      left_out.add(strip.rows, to.row_max);
    });
  }

  template <class ValueRows>
  void finish_group(const Group& group, int64_t unit, int64_t g, const QueryTile& queries,
                    const KeyTile& keys, const ValueRows& value_rows) {
    each_strip(group, g, queries, keys, [&](const Strip& strip, int64_t n, float* lines) HWY_ATTR {
      const SoftmaxState part = group.to.at(group.row(n), p_.width16);
      for (int64_t i = 0; i < strip.rows; ++i)
        part.row_sum[i] = w_.tiled.totals[(group.row(n) + i) * amx::TileQueue::kTotals];
      if (p_.terms == 1)
        finish_rounded_mix(strip, lines, value_rows, w_.table_products, part.out, part.row_sum);
      else
        finish_mix(strip, lines, value_rows, w_.table_products, part.out, part.row_sum);
      uint8_t& fresh = w_.fresh[g * strips() + n];
      if (item_.partial >= 0)
        copy(strip.rows, part, partial(unit, g, n));
      else if (!group.fresh && fresh)
        copy(strip.rows, part, all(g, n));
      else if (!group.fresh)
        merge(strip.rows, p_.width16, part, all(g, n));
      fresh = 0;
    });
  }

  // Rows of a group's tiles.
  int64_t row_blocks(const Group& group) const {
    return std::min(kAmxRows, round_up(item_.rows, kLanes) - group.first * kStrip) / kLanes;
  }

  // q k^T, in the ways that are seen.
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

  // p v, and the sums of p.
  void add_mixing(const Group& group, amx::TileQueue& to) const {
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

  // All heads at once, for the few queries of an item.
  void attend_decode(int64_t unit, const FrameRows& rows, KeyRange seen) {
    const GroupedQueries& grouped = w_.grouped;
    const KeyTile keys = {.keys = {rows.first, rows.first + rows.rows}};
    const KeyRange columns = columns_of(seen, keys.keys);
    const KeyRange mixed = {seen.first - keys.keys.first, seen.last - keys.keys.first};
    const int64_t all_rows = p_.group * item_.rows;
    const KeyRange read = w_.visibility.hull_keys_in(0, {0, item_.units.last * p_.unit});
    const DecodeUnit grouped_unit = {rows, item_.key_head, mixed, read.last - rows.first,
                                     rows_at_once(p_.score, all_rows)};
    multiply_grouped(grouped_unit, columns, all_rows, w_.visibility.rotations_seen(0, 1, keys.keys),
                     w_.keys, grouped);
    const auto each_head = [&](const auto& f) HWY_ATTR {
      for (int64_t g = 0; g < p_.group; ++g) {
        const int64_t row = g * item_.rows;
        const QueryTile queries = {.block = &block_,
                                   .head = head(g),
                                   .first = item_.first,
                                   .rows = item_.rows,
                                   .plain = w_.heads[static_cast<size_t>(g)].plain,
                                   .rotated = w_.heads[static_cast<size_t>(g)].rotated};
        const Strip strip = {p_,
                             w_.visibility,
                             queries,
                             keys,
                             0,
                             item_.rows,
                             columns,
                             w_.key_products,
                             query_products(g),
                             grouped.products,
                             row};
        f(strip, grouped.weights + row * kScoreStride, grouped.unit.at(row, p_.width16));
      }
    };
    const bool scored =
        scores_are_products(p_) && rows.rows % kLanes == 0 && w_.visibility.sees_all(0, keys.keys);
    if (p_.on_query) std::fill_n(grouped.left_out, all_rows, kNothingAdded);
    if (!scored)
      each_head([&](const Strip& strip, float* lines, const SoftmaxState&) HWY_ATTR {
        LeftOut left_out;
        score_strip(strip, {w_.second, w_.table_products}, {lines, lines, nullptr}, &left_out);
        left_out.add(strip.rows, grouped.left_out + strip.product_row);
      });
    for (int64_t row = 0; row < all_rows; row += kStrip)
      softmax_strip(std::min(kStrip, all_rows - row), columns, grouped.weights + row * kScoreStride,
                    grouped.unit.row_max + row, grouped.weight_panels + row * kUnit);
    if (p_.on_query)
      for (int64_t row = 0; row < all_rows; ++row)
        grouped.unit.row_max[row] += grouped.left_out[row];
    decode_pv(grouped_unit, mixed, all_rows, w_.values, grouped);
    const auto values = [&]() HWY_ATTR {
      return whole_rows(rows, p_.score.v, item_.key_head, w_.values);
    };
    if (p_.on_value || !all_finite(grouped.unit.out, all_rows * p_.width16))
      each_head([&](const Strip& strip, float* lines, const SoftmaxState& part) HWY_ATTR {
        finish_mix(strip, lines, values, w_.table_products, part.out, part.row_sum);
      });
    take_grouped(unit, all_rows);
  }

  // What all heads have of a unit: at once, or head by head where some see nothing of it.
  void take_grouped(int64_t unit, int64_t all_rows) {
    const SoftmaxState& part = w_.grouped.unit;
    if (item_.partial >= 0) {
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

  void copy(int64_t rows, const SoftmaxState& from, const SoftmaxState& to) const {
    std::copy_n(from.row_max, rows, to.row_max);
    std::copy_n(from.row_sum, rows, to.row_sum);
    std::copy_n(from.out, rows * p_.width16, to.out);
  }

  // The turned queries of a head, with the growth that belongs to this unit of keys.
  const float* const* rotated(int64_t unit, int64_t g, const std::vector<Panels>& heads,
                              const std::vector<Panels>& grown) {
    const Panels& head = heads[static_cast<size_t>(g)];
    if (grown.empty()) return head.factors();
    const Panels& to = grown[0];
    const FrameRows rows = {p_, block_, Side::kQuery, item_.first, item_.rows};
    for (size_t rotation = 0; rotation < p_.rotations.list.size(); ++rotation) {
      if (p_.rotations.list[rotation].grows) {
        grow_queries(rows, rotation, unit, head.rotated[rotation], w_.factors, to.rotated[rotation],
                     p_.pairs ? to.pairs[rotation] : nullptr);
      } else {
        to.rotated[rotation] = head.rotated[rotation];
        if (p_.pairs) to.pairs[rotation] = head.pairs[rotation];
      }
    }
    return to.factors();
  }

  float* all_query_products(int64_t g) const {
    return w_.query_products + g * w_.rows16 * p_.on_query.count16;
  }
  QueryProducts query_products(int64_t g) const {
    if (w_.query_products) return {all_query_products(g)};
    if (!w_.query_panels) return {};
    return {nullptr, w_.query_panels + g * w_.rows16 * kLanes, w_.query_panel_rows + g * strips()};
  }
  // Heads that are joined lie as Joined has them.
  SoftmaxState all(int64_t g, int64_t strip) const {
    return w_.all.at(g * (grouped() ? item_.rows : w_.rows16) + strip * kStrip, p_.width16);
  }
  SoftmaxState partial(int64_t unit, int64_t g, int64_t strip) const {
    return forward_.partial(item_, unit, g * strips() + strip);
  }

  void take(int64_t g, int64_t strip, const SoftmaxState& part) {
    uint8_t& fresh = w_.fresh[g * strips() + strip];
    const int64_t rows = strip_rows(strip);
    const SoftmaxState to = all(g, strip);
    if (std::all_of(part.row_sum, part.row_sum + rows, [](float sum) { return sum == 0; })) return;
    if (fresh)
      copy(rows, part, to);
    else
      merge(rows, p_.width16, part, to);
    fresh = 0;
  }

  void finish(int64_t g) {
    const Attended<float>& to = forward_.result;
    const int64_t b = block_.frame.batch, h = head(g);
    for (int64_t i = 0; i < item_.rows; ++i) {
      const bool nothing = w_.fresh[g * strips() + i / kStrip] != 0;
      const SoftmaxState row = all(g, 0).at(i, p_.width16);
      float row_max = nothing ? -kInfinity : *row.row_max, sum = nothing ? 0 : *row.row_sum,
            keep = 1;
      if (!p_.score.sink.empty()) {
        const auto sink = static_cast<float>(
            p_.score.sink[static_cast<size_t>(h)] -
            key_bias_origin(p_.score, p_.last_key, b, h, block_.frame.query_row + item_.first + i));
        const float both = std::max(row_max, sink);
        keep = std::exp(row_max - base_of(both));
        sum = sum * keep + std::exp(sink - base_of(both));
        row_max = both;
      }
      const int64_t query = block_.frame.query_row + item_.first + i;
      to.lse(b, h, query, 0) = sum == 0 ? -kInfinity : row_max + std::log(sum);
      if (nothing || sum == 0) std::fill_n(row.out, p_.width16, 0.0F);
      const Lanes factor = set(sum == 0 ? 0 : keep / sum);
      for (int64_t c = 0; c < p_.width16; c += kLanes)
        store(mul(factor, load(row.out + c)), row.out + c);
    }
    write_rows(all(g, 0).out, p_.width16, to.out, b, h, block_.frame.query_row + item_.first,
               item_.rows);
  }

  const Forward& forward_;
  const Problem& p_;
  const ForwardItem& item_;
  const BatchFrame& block_;
  ForwardScratch& w_;
  std::vector<uint8_t> heads_fit_;  // [group]: queries lie in parts
};

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
