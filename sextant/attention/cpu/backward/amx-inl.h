// The products of the backward pass by tiles of AMX, for a block of queries and a unit of keys:
//
//   s = q k^T      dp = do v^T      dv^T += do^T p      dk^T += q^T ds      dq = ds k
//
// Gradients of keys and values accumulate transposed, so that weights and score gradients are the
// right operands, and are paired without a transpose.
#if defined(SEXTANT_ATTENTION_CPU_BACKWARD_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_BACKWARD_AMX_INL_H_
#undef SEXTANT_ATTENTION_CPU_BACKWARD_AMX_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_BACKWARD_AMX_INL_H_
#endif

#include <algorithm>
#include <array>

#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/backward/rotate_back-inl.h"
#include "sextant/attention/cpu/backward/tile_grads-inl.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/tile/bf16x3-inl.h"
#include "sextant/base/simd/amx.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

inline constexpr int kThreeTerms = 3;
inline constexpr int64_t kHalves = kQueryBlock / kAmxRows;
// Half of a block's queries are the rows of a product, or a step of its sums.
static_assert(kAmxRows == amx::kDepth);

// Splits a unit's keys, in every rotation, and values into terms. False if some values do not fit.
inline HWY_NOINLINE bool put_unit_in_terms(const Problem& p, int64_t rows, const Panels& keys,
                                           const RowSets& key_rows, const float* values,
                                           const BackwardTiled& to) {
  const size_t rotations = p.rotations.list.size();
  bool fit = split_panels<kThreeTerms>(keys, Side::kKey, rows, p.depth16, kAllRotations, rotations);
  for (size_t rotation = 0; rotation < rotations; ++rotation)
    pair_lines<kThreeTerms>(rows, p.depth16, to.key_lines[rotation], p.depth16, to.key_step,
                            [&](int64_t j)
                                HWY_ATTR { return key_rows.rotated[rotation] + j * p.depth16; });
  for (int64_t j = 0; j < rows; j += kLanes)
    fit &= pair_panel_columns<kThreeTerms>(values + j * p.width16, p.width16,
                                           to.values + j * amx::paired(p.width16), to.value_step)
               .all();
  for (size_t rotation = 0; rotation < rotations; ++rotation)
    std::fill_n(to.key_sums[rotation], p.depth16 * kScoreStride, 0.0F);
  std::fill_n(to.value_sums, p.width16 * kScoreStride, 0.0F);
  return fit;
}

// The query of a half that is in `lane` of a transposed row; its pair is the query kStrip further
// on.
constexpr int64_t row_across(int64_t lane) { return lane / kStrip * 2 * kStrip + lane % kStrip; }

// Loads the transpose of a square of a half that begins with row `first`: x[n] is column column +
// n, in the lanes from the p-th on. Missing rows are 0.
HWY_INLINE void load_across(Matrix m, int64_t rows, int64_t first, int64_t p, int64_t column,
                            V* x) {
  for (int64_t n = 0; n < kVectorLanes; ++n) {
    const int64_t row = first + row_across(p + n);
    x[n] = row < rows ? load_part(m.data + row * m.stride + column) : hn::Zero(F32());
  }
  sextant::HWY_NAMESPACE::transpose_in_registers(F32(), x);
}

// Splits up to kQueryBlock rows into terms, row-major and across. False if some values do not fit.
inline HWY_NOINLINE bool put_rows_in_terms(Matrix x, int64_t rows, int64_t columns16, float* to,
                                           int64_t to_step, float* across, int64_t across_step) {
  const bool fit = pair_columns<kThreeTerms>(x.data, x.stride, rows, columns16, to, to_step).all();
  constexpr int64_t kRow = kQueryBlock / 2;
  for (int64_t i = 0; i < rows; i += kAmxRows)
    for (int64_t p = 0; p < kLanes; p += kVectorLanes)
      for (int64_t c = 0; c < columns16; c += kVectorLanes) {
        V first[kVectorLanes], second[kVectorLanes];
        load_across(x, rows, i, p, c, first);
        load_across(x, rows, i + kStrip, p, c, second);
        for (int64_t n = 0; n < kVectorLanes; ++n)
          put_pairs(split<kThreeTerms>(first[n]), split<kThreeTerms>(second[n]),
                    across + (c + n) * kRow + i / 2 + p, across_step);
      }
  return fit;
}

// The columns of a unit that each half of a block sees.
using Halves = std::array<KeyRange, kHalves>;
HWY_INLINE Halves halves_of(const Band& band) {
  constexpr int64_t kStrips = kAmxRows / kStrip;
  Halves halves = {};
  for (int64_t n = 0; n < band.strip_count(); ++n) {
    KeyRange& half = halves[static_cast<size_t>(n / kStrips)];
    half = hull(half, band.strip(n));
  }
  return halves;
}

// The number of halves from the h-th on that see the same columns.
HWY_INLINE int64_t alike(const Halves& halves, int64_t h) {
  const auto first = halves.begin() + h;
  return std::find_if(first, halves.end(), [&](KeyRange range) { return !(range == *first); }) -
         first;
}

// Rows times panels, both in terms: to[kQueryBlock][kScoreStride], in the columns that each half
// sees.
HWY_INLINE void multiply_panels(const Halves& halves, int64_t columns16, const float* rows,
                                int64_t row_step, const float* panels, int64_t panel_step,
                                float* to) {
  const int64_t pairs = amx::paired(columns16);
  for (int64_t h = 0, next; h < kHalves; h = next) {
    const KeyRange range = halves[static_cast<size_t>(h)];
    next = h + alike(halves, h);
    if (empty(range)) continue;
    amx::multiply({kThreeTerms,
                   (next - h) * kAmxRows / kLanes,
                   (range.last - range.first) / kLanes,
                   2 * pairs / amx::kDepth,
                   {rows + h * kAmxRows * pairs, row_step, pairs},
                   {panels + range.first * pairs, panel_step, kLanes, kLanes * pairs},
                   to + h * kAmxRows * kScoreStride + range.first,
                   kScoreStride,
                   false});
  }
}

// sums += x^T lines. lines: [rows][kScoreStride] in pairs; x and sums: across.
HWY_INLINE void add_across(const Halves& halves, int64_t columns16, const float* x, int64_t x_step,
                           const float* lines, int64_t line_step, float* sums) {
  constexpr int64_t kRow = kQueryBlock / 2;
  for (int64_t h = 0, steps; h < kHalves; h += steps) {
    const KeyRange range = halves[static_cast<size_t>(h)];
    steps = alike(halves, h);
    if (empty(range)) continue;
    amx::multiply(
        {kThreeTerms,
         columns16 / kLanes,
         (range.last - range.first) / kLanes,
         steps,
         {x + h * kLanes, x_step, kRow},
         {lines + h * kLanes * kScoreStride + range.first, line_step, kScoreStride, kLanes},
         sums + range.first,
         kScoreStride,
         true});
  }
}

// Writes zeros for two missing strips.
HWY_INLINE void pair_no_strips(int64_t first, KeyRange columns, float* to, int64_t term_step) {
  for (int n = 0; n < kThreeTerms; ++n)
    for (int64_t i = first / 2 * kStrip; i < (first / 2 + 1) * kStrip; ++i)
      std::fill(to + n * term_step + i * kScoreStride + columns.first,
                to + n * term_step + i * kScoreStride + columns.last, 0.0F);
}

// Splits the weights of two strips from the first on, in pairs of queries. lines: those of the
// block. False if some are infinite or NaN.
inline HWY_NOINLINE bool put_weights_in_terms(int64_t first, KeyRange columns, const float* lines,
                                              const BackwardTiled& to) {
  Greatest seen;
  const float* line = lines + first * kStrip * kScoreStride;
  float* at = to.weights + first / 2 * kStrip * kScoreStride;
  for (int64_t i = 0; i < kStrip; ++i, line += kScoreStride, at += kScoreStride)
    for (int64_t j = columns.first; j < columns.last; j += kVectorLanes) {
      const V x = load_part(line + j), y = load_part(line + kStrip * kScoreStride + j);
      seen.look(x);
      seen.look(y);
      put_pairs(split<kThreeTerms>(x), split<kThreeTerms>(y), at + j, to.line_step);
    }
  return seen.finite();
}

// Splits the score gradients of two strips, in pairs of queries and in pairs of keys. False if the
// greatest of some line does not fit.
inline HWY_NOINLINE bool put_grads_in_terms(int64_t first, KeyRange columns, const float* lines,
                                            const BackwardTiled& to) {
  bool fit = true;
  // Keys go in whole steps; those outside of `columns` are 0.
  const int64_t stop = round_up(columns.last, amx::kDepth);
  for (int64_t i = 0; i < kStrip; ++i) {
    const int64_t row = first * kStrip + i;
    const float* const line = lines + row * kScoreStride;
    float* const pairs = to.grads + (first / 2 * kStrip + i) * kScoreStride;
    float* const rows = to.grad_rows + row * kPairStride;
    Greatest seen[2];
    const auto terms_at = [&](int strip, int64_t j) HWY_ATTR {
      const bool any = HWY_LIKELY(j >= columns.first && j < columns.last);
      const V x = any ? load_part(line + strip * kStrip * kScoreStride + j) : hn::Zero(F32());
      seen[strip].look(x);
      return split<kThreeTerms>(x);
    };
    for (int64_t j = round_down(columns.first, amx::kDepth); j < stop; j += amx::kDepth)
      for (int64_t p = 0; p < kLanes; p += kVectorLanes) {
        const auto x = terms_at(0, j + p), x_next = terms_at(0, j + p + kLanes);
        put_pairs(x, x_next, rows + j / 2 + p, to.row_step);
        const auto y = terms_at(1, j + p), y_next = terms_at(1, j + p + kLanes);
        put_pairs(y, y_next, rows + kStrip * kPairStride + j / 2 + p, to.row_step);
        put_pairs(x, y, pairs + j + p, to.line_step);
        put_pairs(x_next, y_next, pairs + j + p + kLanes, to.line_step);
      }
    fit = fit && seen[0].fits() && seen[1].fits();
  }
  return fit;
}

// to[kQueryBlock][depth16] = lines times keys.
HWY_INLINE void multiply_key_lines(const Halves& halves, int64_t columns16, const float* rows,
                                   int64_t row_step, const float* keys, int64_t key_step,
                                   float* to) {
  for (int64_t h = 0, next; h < kHalves; h = next) {
    const KeyRange range = halves[static_cast<size_t>(h)];
    next = h + alike(halves, h);
    const int64_t rows_of = (next - h) * kAmxRows;
    float* const at = to + h * kAmxRows * columns16;
    if (empty(range)) {
      std::fill_n(at, rows_of * columns16, 0.0F);
      continue;
    }
    const int64_t first = round_down(range.first, amx::kDepth);
    amx::multiply({kThreeTerms,
                   rows_of / kLanes,
                   columns16 / kLanes,
                   (round_up(range.last, amx::kDepth) - first) / amx::kDepth,
                   {rows + h * kAmxRows * kPairStride + first / 2, row_step, kPairStride},
                   {keys + first / 2 * columns16, key_step, columns16, kLanes},
                   at,
                   columns16,
                   false});
  }
}

// to[rows][columns16] += the transpose of sums. panel: [columns16][kLanes].
inline HWY_NOINLINE void add_sums_across(const float* sums, int64_t rows, int64_t columns16,
                                         float* panel, float* to) {
  for (int64_t j = 0; j < rows; j += kLanes) {
    unpack_panel(sums + j, kScoreStride, columns16, panel, columns16);
    float* const at = to + j * columns16;
    for (int64_t n = 0; n < kLanes * columns16; n += kLanes)
      store(add(load(at + n), load(panel + n)), at + n);
  }
}

// The AMX strategy for the units and tiles of a task whose values fit into terms.
class BackwardByAmx {
 public:
  BackwardByAmx(const Backward& backward, BackwardScratch& scratch)
      : backward_(backward), p_(backward.problem), w_(scratch) {}

  // Whether AMX serves the tile and its weights, or score gradients, fit into terms.
  bool weights_fit() const { return weights_fit_; }
  bool grads_fit() const { return grads_fit_; }

  // Called when keys and values of the unit are packed.
  void start_unit(int64_t rows) {
    unit_fits_ =
        p_.terms > 0 && put_unit_in_terms(p_, rows, w_.keys, w_.key_rows, w_.values, w_.tiled);
  }

  // Called when the queries of the tile are packed. False if AMX does not serve it.
  bool start_tile(RotationsSeen rotations, Matrix d_out, int64_t rows) {
    weights_fit_ = grads_fit_ = unit_fits_ && rows > kStrip && put_queries(rotations, d_out, rows);
    return weights_fit_;
  }

  // Computes q k^T in every rotation, and do v^T.
  void multiply_tile(const Tile& t) const {
    const BackwardTiled& by = w_.tiled;
    const Halves halves = halves_of(t.columns);
    for (size_t rotation = 0; rotation < p_.rotations.list.size(); ++rotation)
      if (t.rotations.has(rotation))
        multiply_panels(halves, p_.depth16, w_.queries.terms[rotation], w_.queries.term_step,
                        w_.keys.terms[rotation], w_.keys.term_step, by.products[rotation]);
    multiply_panels(halves, p_.width16, by.d_out, by.d_out_step, by.values, by.value_step,
                    w_.grads);
  }

  // Splits weights and score gradients of two strips while they are in the L1 cache. With several
  // rotations, put_rotation() splits the gradients of each later.
  void put_strips(const Tile& t, int64_t first) {
    const KeyRange columns = t.columns.all();
    weights_fit_ = put_weights_in_terms(first, columns, w_.weights, w_.tiled) && weights_fit_;
    if (!t.rotations.several)
      grads_fit_ = put_grads_in_terms(first, columns, w_.grads, w_.tiled) && grads_fit_;
  }
  // Fills the half of the last step of sums that has no strips.
  void end_strips(int64_t strips, KeyRange columns) const {
    if (strips % 4 == 0) return;
    pair_no_strips(strips, columns, w_.tiled.weights, w_.tiled.line_step);
    pair_no_strips(strips, columns, w_.tiled.grads, w_.tiled.line_step);
  }
  // Splits the score gradients of one of several rotations.
  void put_rotation(const Tile& t, const float* lines) {
    const KeyRange columns = t.columns.all();
    grads_fit_ = true;
    for (int64_t n = 0; n < round_up(t.rows(), kLanes) / kStrip; n += 2)
      grads_fit_ = put_grads_in_terms(n, columns, lines, w_.tiled) && grads_fit_;
  }

  void collect_values(const Tile& t) const {
    const BackwardTiled& by = w_.tiled;
    add_across(halves_of(t.columns), p_.width16, by.d_out_across, by.d_out_across_step, by.weights,
               by.line_step, by.value_sums);
  }

  // Computes gradients of q, which stay in rotated_grads, and of k.
  void collect_rotation(const Tile& t, const FrameRows& queries, int64_t unit, size_t rotation) {
    const BackwardTiled& by = w_.tiled;
    const Halves halves = halves_of(t.columns);
    if (backward_.wants_queries()) {
      multiply_key_lines(halves, p_.depth16, by.grad_rows, by.row_step, by.key_lines[rotation],
                         by.key_step, w_.rotated_grads);
      rotate_back(queries, rotation, unit, w_.panel, w_.factors, w_.rotated_grads);
    }
    if (backward_.grad.k)
      add_across(halves, p_.depth16, by.queries_across[rotation], by.query_step, by.grads,
                 by.line_step, by.key_sums[rotation]);
  }

  // Adds the sums that AMX made to the unit's gradients.
  void finish_unit(int64_t rows) const {
    const BackwardTiled& by = w_.tiled;
    if (backward_.grad.v)
      add_sums_across(by.value_sums, rows, p_.width16, by.panel, w_.value_grads);
    for (size_t rotation = 0; backward_.grad.k && rotation < p_.rotations.list.size(); ++rotation)
      add_sums_across(by.key_sums[rotation], rows, p_.depth16, by.panel,
                      w_.key_grads.rotated[rotation]);
  }

 private:
  bool put_queries(RotationsSeen rotations, Matrix d_out, int64_t rows) const {
    const BackwardTiled& to = w_.tiled;
    bool fit = put_rows_in_terms(d_out, rows, p_.width16, to.d_out, to.d_out_step, to.d_out_across,
                                 to.d_out_across_step);
    for (size_t rotation = 0; rotation < p_.rotations.list.size(); ++rotation)
      if (rotations.has(rotation))
        fit = put_rows_in_terms({w_.query_rows.rotated[rotation], p_.depth16}, rows, p_.depth16,
                                w_.queries.terms[rotation], w_.queries.term_step,
                                to.queries_across[rotation], to.query_step) &&
              fit;
    return fit;
  }

  const Backward& backward_;
  const Problem& p_;
  BackwardScratch& w_;
  bool unit_fits_ = false;  // whether keys and values of the unit fit
  bool weights_fit_ = false, grads_fit_ = false;
};

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
