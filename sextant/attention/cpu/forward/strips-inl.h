// The forward strategy for any score: unit by unit of keys, strip by strip of queries. The whole
// loop, from a call to the multiply-add, and the file of each line:
//
//   make frames, phases and packed tables             cpu.cc, pass_plan.cc, problem.cc
//   for each item, in parallel, by its strategy       plan.cc; forward.cc, kernels-inl.h
//     pack and rotate the queries of a group          item-inl.h; prepare-inl.h, tile/pack-inl.h
//     for each unit of keys that any of them sees     strips-inl.h: each_unit()
//       pack and rotate its keys                      prepare-inl.h, tile/pack-inl.h
//       for each head of the group, strip of queries  strips-inl.h: attend_head()
//         s = <R q, R k> + q.A + k.B, tau(w s) + b    score/scores-inl.h, terms-inl.h,
//         tables-inl.h;
//                                                     axes-inl.h for the terms of further axes
//           c += a b                                  tile/multiply-inl.h, multiply_tile-inl.h
//         s of hidden keys = -infinity                score/scores-inl.h; visibility.h
//         p = e^(s - row_max), dropout                tile/softmax-inl.h; score/dropout-inl.h
//         part = p (v + C), row sums of p             weighted_values-inl.h; tile/multiply-inl.h
//         merge the part into the strip's state       tile/softmax-inl.h: merge()
//     add the sink, divide by the sums, write rows    item-inl.h: finish()
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_STRIPS_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_STRIPS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_STRIPS_INL_H_
#endif

#include <algorithm>
#include <vector>

#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/attention/cpu/forward/item-inl.h"
#include "sextant/attention/cpu/forward/weighted_values-inl.h"
#include "sextant/attention/cpu/prepare-inl.h"
#include "sextant/attention/cpu/score/dropout-inl.h"
#include "sextant/attention/cpu/score/scores-inl.h"
#include "sextant/attention/cpu/tile/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

class ForwardByStrips : public ForwardTask {
 public:
  using ForwardTask::ForwardTask;

  void attend() {
    prepare_queries();
    each_unit([&](int64_t unit, const FrameRows&, const KeyTile& keys, KeyRange seen,
                  const Values& values, const auto& value_rows) HWY_ATTR {
      for (int64_t g = 0; g < p_.group; ++g) {
        const QueryTile queries = prepare_head(unit, g, keys, seen);
        attend_head(unit, g, queries, keys, values, value_rows);
      }
    });
    finish_heads();
  }

 protected:
  // Calls f(unit, its rows, keys, the keys that any query sees, values, a function that gives the
  // rows of values) for each unit that is seen.
  template <class F>
  void each_unit(F&& f) {
    for (int64_t unit = item_.units.first; unit < item_.units.last; ++unit) {
      const KeyRange keys = keys_of(unit), seen = intersect(w_.visibility.all(), keys);
      if (empty(seen)) {
        clear_unit(unit);
        continue;
      }
      const FrameRows rows = key_rows_of(keys);
      pack_rows(rows, p_.score.k, item_.key_head, 1, w_.keys,
                w_.visibility.rotations_seen(0, strips(), keys));
      const Values values = values_of(rows);
      const auto value_rows = [&]() HWY_ATTR {
        return values.rows.data ? values.rows
                                : whole_rows(rows, p_.score.v, item_.key_head, w_.values);
      };
      f(unit, rows, KeyTile{keys, w_.keys.plain, w_.keys.factors()}, seen, values, value_rows);
    }
  }

  QueryTile prepare_head(int64_t unit, int64_t g, const KeyTile& keys, KeyRange seen) {
    const QueryTile queries = {
        .block = &block_,
        .head = head(g),
        .first = item_.first,
        .rows = item_.rows,
        .rotated = rotated(unit, g, w_.heads, w_.grown),
        .imaginary = p_.score.q_imag ? rotated(unit, g, w_.imaginary, w_.grown_imaginary) : nullptr,
        .of_tables = of_tables(g),
        .axis_products = axis_products(g)};
    if (p_.on_key && (g == 0 || p_.on_key.heads > 1))
      multiply_keys(p_, queries, keys, columns_of(seen, keys.keys), w_.table_products,
                    w_.key_products);
    return queries;
  }

  template <class ValueRows>
  void attend_head(int64_t unit, int64_t g, const QueryTile& queries, const KeyTile& keys,
                   const Values& values, const ValueRows& value_rows) {
    for (int64_t n = 0; n < strips(); ++n) {
      const KeyRange seen = w_.visibility.hull_keys_in(n, keys.keys);
      if (empty(seen)) {
        if (cut()) clear(strip_rows(n), p_.width16, partial(unit, g, n));
        continue;
      }
      const Strip strip = strip_of(n, g, queries, keys);
      const SoftmaxState to = cut() ? partial(unit, g, n) : fresh(g, n) ? all(g, n) : w_.unit;
      score_strip(strip, {w_.second, w_.table_products}, w_.strip);
      softmax(strip, to);
      // The sums of the weights that are kept; without dropout, of all.
      HWY_ALIGN float kept[kStrip];
      multiply_pv(strip, w_.strip.scores, w_.weights,
                  {seen.first - keys.keys.first, seen.last - keys.keys.first}, values, value_rows,
                  w_.table_products, to.out, p_.score.dropout ? kept : to.row_sum);
      if (!cut() && !fresh(g, n)) merge(strip.rows, p_.width16, to, all(g, n));
      fresh(g, n) = 0;
    }
  }

  // Makes weights from the scores of a strip.
  void softmax(const Strip& strip, const SoftmaxState& to) const {
    with_dropout(strip, to.row_sum, [&](auto& keep) HWY_ATTR {
      if (p_.pairs)
        with_dots(p_.dots, [&](auto dots) HWY_ATTR {
          softmax_pairs<dots()>(strip.rows, strip.columns, w_.strip.scores, to.row_max, w_.weights,
                                keep);
        });
      else
        softmax_strip(strip.rows, strip.columns, w_.strip.scores, to.row_max, w_.weights, keep);
    });
  }

  // The n-th strip, which sees some of the keys.
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

 private:
  Values values_of(const FrameRows& rows) {
    const HostRows<float>& v = p_.score.v;
    if (!p_.pairs) {
      // A copy pays only if the values are read more than once.
      const auto rows_of = p_.group * item_.rows > kStrip ? near_rows : whole_rows;
      return {rows_of(rows, v, item_.key_head, w_.values)};
    }
    for (int64_t i = 0, count; i < rows.rows; i += count) {
      count = rows.together(i);
      float* const to = w_.value_pairs + i / 2 * p_.width16;
      if (has_whole_rows(v) && !rows.is_int8(i)) {
        with_type(v.dtype, rows.at(v, item_.key_head, i), [&](const auto* from) HWY_ATTR {
          pair_rows(from, v.row_stride, count, p_.width16, to);
        });
      } else {
        copy_some(rows, v, item_.key_head, {i, i + count}, w_.values);
        pair_rows(w_.values, p_.width16, count, p_.width16, to);
      }
    }
    return {{}, w_.value_pairs};
  }

  // The rotated queries of a head, with the growth that belongs to this unit of keys.
  const float* const* rotated(int64_t unit, int64_t g, std::span<const Panels> heads,
                              std::span<const Panels> grown) {
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
};

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
