// A task of the backward pass: the units of one key head, and the queries that see them.
#if defined(SEXTANT_ATTENTION_CPU_BACKWARD_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_BACKWARD_STRIPS_INL_H_
#undef SEXTANT_ATTENTION_CPU_BACKWARD_STRIPS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_BACKWARD_STRIPS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "sextant/attention/cpu/backward/amx-inl.h"
#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/backward/rotate_back-inl.h"
#include "sextant/attention/cpu/backward/table_queries-inl.h"
#include "sextant/attention/cpu/backward/tile_grads-inl.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/score/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

class BackwardWalk {
 public:
  BackwardWalk(const Backward& backward, const TableSums& sums, int64_t task,
               BackwardScratch& scratch)
      : backward_(backward),
        p_(backward.problem),
        sums_(sums),
        task_(backward.tasks[static_cast<size_t>(task)]),
        w_(scratch),
        amx_(backward, scratch),
        tables_(backward, sums, task_, scratch),
        query_sums_(scratch.query_sums) {}

  void walk() {
    tables_.multiply_axes();
    float* const all = query_sums_;
    for (int64_t n = task_.first_split; n < task_.last_split; ++n) {
      const bool first = n == task_.first_split;
      if (!first) query_sums_ = w_.split_sums;
      split(n);
      if (!first && backward_.wants_queries())
        add_scaled(backward_.query_sums_size(), 1, query_sums_, all);
    }
  }

 private:
  bool wants_keys() const { return static_cast<bool>(backward_.grad.k); }
  bool wants_values() const { return static_cast<bool>(backward_.grad.v); }
  size_t rotation_count() const { return p_.rotations.list.size(); }

  void split(int64_t n) {
    if (backward_.wants_queries()) std::fill_n(query_sums_, backward_.query_sums_size(), 0.0F);
    for (const UnitOfBlock& of : backward_.units[static_cast<size_t>(task_.batch)])
      if (of.unit % kSplits == n) unit(p_.blocks[of.block], of.unit);
    tables_.collect_axes(query_sums_);
  }

  void unit(const BatchFrame& block, int64_t unit) {
    const KeyRange keys = {unit * p_.unit, std::min((unit + 1) * p_.unit, block.frame.keys)};
    bool ready = false;
    for (int64_t first = 0; first < block.frame.queries; first += kQueryBlock) {
      const int64_t rows = std::min(kQueryBlock, block.frame.queries - first);
      w_.visibility.look(block, first, rows);
      if (empty(intersect(w_.visibility.all(), keys))) continue;
      if (!ready) prepare_unit(block, keys);
      ready = true;
      for (int64_t g = 0; g < p_.group; ++g) tile(block, unit, keys, g, first, rows);
    }
    if (ready)
      finish_unit(block, keys);
    else if (backward_.keys_once)
      clear_unit(block, keys);
  }

  void prepare_unit(const BatchFrame& block, KeyRange keys) {
    const FrameRows rows = {p_, block, Side::kKey, keys.first, keys.last - keys.first};
    pack_rows(rows, p_.score.k, task_.key_head, 1, w_.keys);
    unpack_rows(p_, w_.keys.rotated, w_.keys.plain, rows.rows, kAllRotations, w_.key_rows);
    for (int64_t j = 0; j < rows.rows; j += kLanes)
      pack_panel_of(rows, p_.score.v, task_.key_head, j, std::min(kLanes, rows.rows - j), 1,
                    w_.values + j * p_.width16);
    keys_finite_ =
        rows_finite(p_, w_.key_rows, round_up(rows.rows, kLanes) * p_.depth16, kAllRotations);
    const int64_t size = p_.unit * p_.depth16;
    if (w_.key_grads.plain) std::fill_n(w_.key_grads.plain, size, 0.0F);
    for (size_t rotation = 0; rotation < rotation_count(); ++rotation)
      if (w_.key_grads.rotated[rotation] != w_.key_grads.plain)
        std::fill_n(w_.key_grads.rotated[rotation], size, 0.0F);
    std::fill_n(w_.value_grads, p_.unit * p_.width16, 0.0F);
    amx_.start_unit(rows.rows);
  }

  void tile(const BatchFrame& block, int64_t unit, KeyRange keys, int64_t g, int64_t first,
            int64_t rows) {
    const int64_t h = task_.key_head * p_.group + g;
    const FrameRows queries = {p_, block, Side::kQuery, first, rows};
    const RotationsSeen rotations =
        w_.visibility.rotations_seen(0, (rows + kStrip - 1) / kStrip, keys);
    const QueryTile query_tile = prepare_queries(queries, g, unit, rotations);
    const KeyTile key_tile = {keys, w_.keys.plain, w_.keys.rotated};
    const Matrix d_out = near_rows(queries, backward_.d_out, h, w_.d_out);
    const bool by_amx = amx_.start_tile(rotations, d_out, rows);
    const Tile t = {.problem = p_,
                    .block = block,
                    .head = h,
                    .first = first,
                    .first_key = keys.first,
                    .rotations = rotations,
                    .columns = bands(keys, rows),
                    .exactly = !by_amx && (!keys_finite_ || !d_out_finite(rows) ||
                                           !queries_finite(rows, rotations)),
                    .by_amx = by_amx};
    if (p_.on_key)
      multiply_keys(p_, query_tile, key_tile, t.columns.all(), w_.table_products, w_.key_products);
    if (by_amx) amx_.multiply_tile(t);
    const KeyRange columns = t.columns.all();
    const int64_t strips = round_up(rows, kLanes) / kStrip;
    for (int64_t n = 0; n < strips; ++n) {
      fill_line_ends(t, n, columns);
      if (!empty(t.columns.strip(n))) strip(n, query_tile, key_tile, d_out, t);
      if (by_amx && n % 2 == 1) amx_.put_strips(t, n - 1);
    }
    if (by_amx) amx_.end_strips(strips, columns);
    collect_values(t, d_out);
    collect_products(t, queries, unit, g);
  }

  // The block's queries as rows, with lse and mean.
  QueryTile prepare_queries(const FrameRows& queries, int64_t g, int64_t unit,
                            RotationsSeen rotations) {
    const int64_t h = task_.key_head * p_.group + g;
    const bool modulus = static_cast<bool>(p_.score.q_imag);
    put_query_rows({queries, p_.score.q, h, unit, rotations}, w_.queries, w_.grown, w_.factors,
                   w_.query_rows);
    if (modulus)
      put_query_rows({queries, p_.score.q_imag, h, unit, rotations}, w_.imaginary,
                     w_.grown_imaginary, w_.factors, w_.imaginary_rows);
    const float* mean = backward_.mean_of(task_.batch, h);
    for (int64_t i = 0; i < queries.rows; ++i) {
      const float lse = backward_.result.lse(task_.batch, h, queries.row() + i, 0);
      w_.lse[i] = lse == -kInfinity ? kInfinity : lse;  // weights e^(s - infinity) are 0
      w_.mean[i] = mean[queries.row() + i];
    }
    return {.block = &queries.block,
            .head = h,
            .first = queries.first,
            .rows = queries.rows,
            .rotated = w_.query_rows.rotated,
            .imaginary = modulus ? w_.imaginary_rows.rotated : nullptr,
            .of_tables = tables_.has_r() ? tables_.put_rows(queries, g) : w_.query_rows.plain,
            .axis_products = tables_.products(g, queries),
            .in_rows = true};
  }

  // The columns of a unit that each strip sees in some rotations.
  Band bands(KeyRange keys, int64_t rows, RotationsSeen rotations = kAllRotations) const {
    Band band = {.rows = rows};
    for (int64_t n = 0; n < band.strip_count(); ++n)
      band.strips[static_cast<size_t>(n)] =
          columns_of(w_.visibility.hull_keys_in(n, keys, rotations), keys);
    return band;
  }

  // Writes zeros in the columns that other strips see and this one does not, and in the margin,
  // which tables read.
  void fill_line_ends(const Tile& t, int64_t strip, KeyRange columns) {
    const int64_t margin = p_.on_query || p_.on_value ? kLineMargin : 0;
    if (margin == 0 && (strip + 1) * kStrip <= t.rows() && t.columns.strip(strip) == columns)
      return;
    for (float* lines : {w_.weights, w_.grads, w_.imaginary_grads,
                         w_.score_grads != w_.grads ? w_.score_grads : nullptr}) {
      if (!lines) continue;
      for (int64_t i = strip * kStrip; i < (strip + 1) * kStrip; ++i) {
        float* line = lines + i * kScoreStride;
        const KeyRange own = i < t.rows() ? t.columns.strip(strip) : KeyRange{};
        const KeyRange seen = empty(own) ? KeyRange{columns.last, columns.last} : own;
        std::fill(line + columns.first - margin, line + seen.first, 0.0F);
        std::fill(line + seen.last, line + columns.last + margin, 0.0F);
      }
    }
  }

  // Weights and score gradients of one strip.
  void strip(int64_t n, const QueryTile& queries, const KeyTile& keys, Matrix d_out,
             const Tile& t) {
    const KeyRange columns = t.columns.strip(n);
    const int64_t at = n * kStrip * kScoreStride;
    Strip s = {p_,         w_.visibility,           queries, keys,
               n * kStrip, t.columns.strip_rows(n), columns, w_.key_products};
    if (t.by_amx) {
      s.products = w_.tiled.products;
      s.product_row = s.row;
    }
    const bool keep = w_.real != nullptr;
    score_strip(s, {w_.second, w_.table_products},
                {w_.weights + at, keep ? w_.real : w_.weights + at, w_.imaginary_product});
    const LeftRows left = {d_out.data + s.row * d_out.stride, d_out.stride};
    multiply_values(s, left, t.by_amx, w_.grads + at);
    const GradStrip g = {w_.weights + at,
                         w_.grads + at,
                         w_.imaginary_grads ? w_.imaginary_grads + at : nullptr,
                         w_.real,
                         w_.imaginary_product,
                         w_.lse + s.row,
                         w_.mean + s.row,
                         p_.score.dropout ? &dropped_ : nullptr};
    if (g.dropped) find_dropped(s, dropped_);
    differentiate_scores(s, g, sums_, backward_.grad);
    if (w_.score_grads != w_.grads)
      for (int64_t i = at; i < at + s.rows * kScoreStride; i += kScoreStride)
        std::copy(w_.grads + i + columns.first, w_.grads + i + columns.last,
                  w_.score_grads + i + columns.first);
    differentiate_products(s, g, w_.weighted, sums_);
    if (w_.axis_grads) tables_.sum_axes(s, at);
  }

  // lines = do (v + C). known: lines already hold do v.
  void multiply_values(const Strip& s, LeftRows d_out, bool known, float* lines) {
    const int64_t panel = kLanes * p_.width16;
    const auto multiply_and = [&](auto epilogue) HWY_ATTR {
      multiply<Sum::kNew>(s.rows, s.count() / kLanes, p_.width, d_out,
                          RightPanels{w_.values + s.columns.first / kLanes * panel, panel},
                          lines + s.columns.first, kScoreStride, Nothing(), epilogue);
    };
    if (!p_.on_value) return known ? void() : multiply_and(Nothing());
    ScoreEpilogue epilogue_terms(s.rows, s.columns, 1);
    float* const place = known ? w_.second.scores : lines;  // memory for gathered products
    epilogue_terms.put_table_products(p_.on_value.map, s.diagonal(0),
                                      multiply_table(s, p_.on_value, d_out, w_.table_products),
                                      place);
    if (known)
      add_to_products(s, lines, epilogue_terms.all(), lines);
    else
      multiply_and(epilogue_terms.all());
  }

  void collect_values(const Tile& t, Matrix d_out) {
    if (wants_values() && amx_.weights_fit())
      amx_.collect_values(t);
    else if (wants_values())
      collect_things(t.columns, t.exactly, w_.weights, kScoreStride, d_out, p_.width16,
                     w_.value_grads);
    if (sums_.on_value)
      collect_table(t, p_.on_value, w_.weights, d_out, w_.table_products,
                    table_grad_of(sums_, p_.on_value, sums_.on_value, t.head), nullptr, 0);
  }

  // Gradients of q and k, one rotation after the other. The gradients of q stay in w_.rotated_grads
  // until the next ones overwrite them.
  void collect_products(const Tile& t, const FrameRows& queries, int64_t unit, int64_t g) {
    const bool wants = static_cast<bool>(backward_.grad.q);
    bool waiting = false;
    const auto add_waiting = [&]() HWY_ATTR {
      if (waiting) add_queries(t, sums_row(g, queries, 0));
      waiting = false;
    };
    for (size_t rotation = 0; rotation < rotation_count(); ++rotation) {
      if (!t.rotations.has(rotation)) continue;
      const float* lines = w_.grads;
      const float* imaginary = w_.imaginary_grads;
      Tile part = t;
      if (t.rotations.several) {
        part.columns = bands({t.first_key, seen_keys(t).last}, t.rows(), {rotation, false});
        if (empty(part.columns.all())) continue;
        pick_rotation(part, rotation, lines, w_.rotation_grads);
        lines = w_.rotation_grads;
        if (imaginary) pick_rotation(part, rotation, imaginary, w_.rotation_imaginary_grads);
        if (imaginary) imaginary = w_.rotation_imaginary_grads;
      }
      add_waiting();
      if (imaginary) {
        collect_rotation(part, queries, unit, rotation, imaginary, w_.imaginary_rows);
        if (backward_.wants_queries()) add_queries(t, sums_row(g, queries, 1));
      }
      collect_rotation(part, queries, unit, rotation, lines, w_.query_rows);
      waiting = wants;
    }
    if (p_.on_query && tables_.has_r()) {
      tables_.add_gradients(t, queries, g, query_sums_);
    } else if (p_.on_query) {
      if (!waiting) std::fill_n(w_.rotated_grads, t.rows() * p_.depth16, 0.0F);
      collect_table(t, p_.on_query, w_.grads, {w_.query_rows.plain, p_.depth16}, w_.table_products,
                    table_grad_of(sums_, p_.on_query, sums_.on_query, t.head),
                    wants ? w_.rotated_grads : nullptr, p_.depth16);
      waiting = wants;
    }
    add_waiting();
    if (p_.on_key)
      collect_key_table(t, w_.grads, w_.key_rows.plain, w_.key_products.across, w_.table_products,
                        table_grad_of(sums_, p_.on_key, sums_.on_key, t.head), w_.key_grads.plain);
  }

  static KeyRange seen_keys(const Tile& t) {
    const KeyRange columns = t.columns.all();
    return {t.first_key + columns.first, t.first_key + columns.last};
  }

  // Copies rows with zeros for the keys that are not seen in one rotation.
  void pick_rotation(const Tile& t, size_t rotation, const float* from, float* to) const {
    const KeyRange keys = seen_keys(t), columns = t.columns.all();
    for (int64_t i = 0; i < round_up(t.rows(), kLanes); ++i) {
      const int64_t at = i * kScoreStride;
      std::fill(to + at + columns.first, to + at + columns.last, 0.0F);
      if (i >= t.rows()) continue;
      w_.visibility.each_range(i, keys, {rotation, false}, [&](KeyRange range) {
        std::copy(from + at + range.first - t.first_key, from + at + range.last - t.first_key,
                  to + at + range.first - t.first_key);
      });
    }
  }

  void collect_rotation(const Tile& t, const FrameRows& queries, int64_t unit, size_t rotation,
                        const float* lines, const RowSets& rows) {
    if (t.by_amx && t.rotations.several) amx_.put_rotation(t, lines);
    if (amx_.grads_fit()) return amx_.collect_rotation(t, queries, unit, rotation);
    if (backward_.wants_queries()) {
      collect_queries<Sum::kNew>(t.columns, t.exactly, lines, kScoreStride,
                                 w_.key_rows.rotated[rotation], p_.depth16, w_.rotated_grads,
                                 p_.depth16);
      rotate_back(queries, rotation, unit, w_.panel, w_.factors, w_.rotated_grads);
    }
    if (wants_keys())
      collect_things(t.columns, t.exactly, lines, kScoreStride,
                     {rows.rotated[rotation], p_.depth16}, p_.depth16,
                     w_.key_grads.rotated[rotation]);
  }

  void add_queries(const Tile& t, int64_t row) {
    add_scaled(t.rows() * p_.depth16, p_.scale, w_.rotated_grads, query_sums_ + row * p_.depth16);
  }

  // The row of query_sums_ of the first query of a tile.
  int64_t sums_row(int64_t g, const FrameRows& queries, int64_t imaginary) const {
    return (imaginary * p_.group + g) * p_.score.q.rows + queries.row();
  }

  // Rotates the unit's complete gradients back and writes them.
  void finish_unit(const BatchFrame& block, KeyRange keys) {
    const FrameRows rows = {p_, block, Side::kKey, keys.first, keys.last - keys.first};
    const auto give = [&](const HostView<float>& to, const float* from, int64_t columns16,
                          bool adds) HWY_ATTR {
      for (int64_t j = 0; j < rows.rows; ++j)
        give_row(from + j * columns16, to.columns, adds,
                 to.at(task_.batch, task_.key_head, rows.row() + j), to.column_stride);
    };
    bool adds = !backward_.keys_once;
    if (p_.terms > 0) amx_.finish_unit(rows.rows);
    if (wants_values()) give(backward_.grad.v, w_.value_grads, p_.width16, adds);
    if (!wants_keys()) return;
    if (w_.key_grads.plain) {
      give(backward_.grad.k, w_.key_grads.plain, p_.depth16, adds);
      adds = true;
    }
    for (size_t rotation = 0; rotation < rotation_count(); ++rotation) {
      float* grads = w_.key_grads.rotated[rotation];
      if (grads == w_.key_grads.plain) continue;
      rotate_back(rows, rotation, 0, w_.panel, w_.factors, grads);
      give(backward_.grad.k, grads, p_.depth16, adds);
      adds = true;
    }
  }

  // Writes zeros for a unit that no query sees.
  void clear_unit(const BatchFrame& block, KeyRange keys) {
    for (const HostView<float>& to : {backward_.grad.k, backward_.grad.v})
      for (int64_t j = keys.first; to && j < keys.last; ++j)
        for (int64_t c = 0; c < to.columns; ++c)
          to(task_.batch, task_.key_head, block.frame.key_row + j, c) = 0;
  }

  // An infinity or NaN in a row of do makes its mean infinite or NaN, whatever `out` is.
  bool d_out_finite(int64_t rows) const {
    return std::all_of(w_.mean, w_.mean + rows, [](float mean) { return std::isfinite(mean); });
  }
  bool queries_finite(int64_t rows, RotationsSeen rotations) const {
    const int64_t size = round_up(rows, kLanes) * p_.depth16;
    return rows_finite(p_, w_.query_rows, size, rotations) &&
           (!p_.score.q_imag || rows_finite(p_, w_.imaginary_rows, size, rotations));
  }

  const Backward& backward_;
  const Problem& p_;
  const TableSums& sums_;
  const BackwardTask& task_;
  BackwardScratch& w_;
  BackwardByAmx amx_;
  TableQueries tables_;
  float* query_sums_;
  DroppedColumns dropped_;  // of a strip
  bool keys_finite_ = true;
};

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
