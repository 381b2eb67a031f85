#include <numeric>
#include <span>

#include "sextant/attention/layouts.h"
#include "sextant/c/guard.h"
#include "sextant/c/handles.h"
#include "sextant/position/row_map.h"
#include "sextant/position/slopes.h"

using namespace sextant;
using sextant::c::guarded;
using sextant::c::need;

namespace {

OwnedPlan packed_layout(const sextant_attention& a, const std::optional<Rotation>& rotation) {
  if (a.sees != SEXTANT_CAUSAL)
    fail("attention: sees: expected SEXTANT_CAUSAL with lengths, but got another");
  if (a.sequences < 0)
    fail("attention: sequences: expected at least 0, but got " + std::to_string(a.sequences));
  const std::span lengths(a.lengths, static_cast<size_t>(a.sequences));
  OwnedPlan layout = packed(lengths, rotation, a.window);
  const int64_t rows = std::reduce(lengths.begin(), lengths.end());
  if (a.q.rows != rows || a.k.rows != rows)
    fail("attention: lengths: expected a sum of " + std::to_string(a.q.rows) + " queries and " +
         std::to_string(a.k.rows) + " keys, but got " + std::to_string(rows));
  return layout;
}

OwnedPlan layout_of(const sextant_attention& a) {
  std::optional<Rotation> rotation;
  if (a.rope) rotation = a.rope->rotation;
  if (a.lengths) return packed_layout(a, rotation);
  const SequenceRows rows = {.queries = a.q.rows, .keys = a.k.rows};
  if (a.sees == SEXTANT_CAUSAL)
    return a.window == 0 ? causal(rows, rotation) : windowed(rows, a.window, rotation);
  if (a.sees != SEXTANT_ALL_KEYS)
    fail("attention: sees: expected SEXTANT_CAUSAL or SEXTANT_ALL_KEYS, but got " +
         std::to_string(static_cast<int>(a.sees)));
  if (a.window != 0)
    fail("attention: window: expected 0 with SEXTANT_ALL_KEYS, but got " +
         std::to_string(a.window));
  return bidirectional(rows, rotation);
}

}  // namespace

sextant_status sextant_attention_diagonals(const sextant_attention* attention, int64_t* farthest,
                                           int64_t* count) {
  return guarded([&] {
    const OwnedPlan layout = layout_of(need(attention, "attention"));
    int64_t& to = need(count, "count");
    need(farthest, "farthest") = layout.diagonals().farthest;
    to = layout.diagonals().count;
  });
}

sextant_status sextant_attend(const sextant_attention* attention, const sextant_array* out,
                              const sextant_array* lse, const sextant_pool* pool) {
  return guarded([&] {
    const sextant_attention& a = need(attention, "attention");
    const OwnedPlan layout = layout_of(a);
    Score<float> score = {{.q = c::view_of(a.q, "q"),
                           .k = c::view_of(a.k, "k"),
                           .v = c::view_of(a.v, "v"),
                           .scale = c::scale_of(a.scale, a.q.columns)},
                          layout.plan()};
    c::set_bias_and_sink(a.bias, a.sink, score);
    c::attend_into(score, out, lse, pool);
  });
}

sextant_status sextant_alibi_slopes(int64_t heads, double max_bias, double* slopes) {
  return guarded([&] {
    const std::vector<double> computed = alibi_slopes(heads, max_bias);
    std::copy(computed.begin(), computed.end(), &need(slopes, "slopes"));
  });
}

sextant_status sextant_t5_rows(int64_t buckets, int64_t max_distance, int bidirectional,
                               int64_t farthest, int64_t count, int32_t* rows) {
  return guarded([&] {
    const T5Buckets t5(
        {.buckets = buckets, .max_distance = max_distance, .bidirectional = bidirectional != 0});
    const std::vector<int32_t> map = row_map({.farthest = farthest, .count = count}, t5);
    if (!map.empty()) std::copy(map.begin(), map.end(), &need(rows, "rows"));
  });
}
