#include <algorithm>
#include <span>
#include <string>

#include "sextant/attention/layouts.h"
#include "sextant/c/guard.h"
#include "sextant/c/handles.h"
#include "sextant/position/row_map.h"
#include "sextant/position/slopes.h"

using namespace sextant;
using sextant::c::guarded;
using sextant::c::need;

namespace {

std::span<const int64_t> lengths_of(const sextant_attention& a) {
  return {a.lengths, static_cast<size_t>(a.sequences)};
}

void check_lengths(const sextant_attention& a) {
  if (a.sees != SEXTANT_CAUSAL)
    fail("attention: sees: expected SEXTANT_CAUSAL with lengths, but got another");
  int64_t rows = 0;
  for (const int64_t length : lengths_of(a)) {
    if (length < 0 || length > kLargestView)
      fail("attention: lengths: expected 0 to 2^60, but got " + std::to_string(length));
    rows += length;
    if (rows > std::min(a.q.rows, a.k.rows)) break;  // and the sum does not overflow
  }
  if (a.q.rows != rows || a.k.rows != rows)
    fail("attention: lengths: expected a sum of " + std::to_string(a.q.rows) + " queries and " +
         std::to_string(a.k.rows) + " keys, but got " +
         (rows > std::min(a.q.rows, a.k.rows) ? "at least " : "") + std::to_string(rows));
}

// Checks all that the layout depends on, before memory is spent on it.
void check_layout(const sextant_attention& a) {
  if (a.sees != SEXTANT_CAUSAL && a.sees != SEXTANT_ALL_KEYS)
    fail("attention: sees: expected SEXTANT_CAUSAL or SEXTANT_ALL_KEYS, but got " +
         std::to_string(static_cast<int>(a.sees)));
  if (a.window < 0)
    fail("attention: window: expected at least 0, but got " + std::to_string(a.window));
  if (a.window != 0 && a.sees == SEXTANT_ALL_KEYS)
    fail("attention: window: expected 0 with SEXTANT_ALL_KEYS, but got " +
         std::to_string(a.window));
  if (a.sequences < 0)
    fail("attention: sequences: expected at least 0, but got " + std::to_string(a.sequences));
  if (a.lengths) return check_lengths(a);
  if (a.sequences != 0)
    fail("attention: lengths: expected " + std::to_string(a.sequences) +
         " lengths, as sequences says, but got NULL");
  if (a.q.rows > a.k.rows)
    fail("attention: q.rows: expected at most the " + std::to_string(a.k.rows) +
         " rows of k, as the queries are the last rows, but got " + std::to_string(a.q.rows));
}

OwnedPlan layout_of(const sextant_attention& a) {
  std::optional<Rotation> rotation;
  if (a.rope) rotation = a.rope->rotation;
  if (a.lengths) return packed(lengths_of(a), rotation, a.window);
  const SequenceRows rows = {.queries = a.q.rows, .keys = a.k.rows};
  if (a.sees == SEXTANT_ALL_KEYS) return bidirectional(rows, rotation);
  return a.window == 0 ? causal(rows, rotation) : windowed(rows, a.window, rotation);
}

Diagonals diagonals_of(const sextant_attention& a) {
  if (a.lengths) return packed_diagonals(lengths_of(a), a.window);
  const SequenceRows rows = {.queries = a.q.rows, .keys = a.k.rows};
  return a.sees == SEXTANT_ALL_KEYS ? bidirectional_diagonals(rows)
                                    : causal_diagonals(rows, a.window);
}

}  // namespace

sextant_status sextant_attention_diagonals(const sextant_attention* attention, int64_t* farthest,
                                           int64_t* count) {
  return guarded([&] {
    const sextant_attention& a = need(attention, "attention");
    c::view_of(a.q, "q"), c::view_of(a.k, "k");  // their sizes are valid
    check_layout(a);
    const Diagonals diagonals = diagonals_of(a);
    int64_t& to = need(count, "count");
    need(farthest, "farthest") = diagonals.farthest;
    to = diagonals.count;
  });
}

sextant_status sextant_attend(const sextant_attention* attention, const sextant_array* out,
                              const sextant_array* lse, const sextant_pool* pool) {
  return guarded([&] {
    const sextant_attention& a = need(attention, "attention");
    const Operands<float> operands = {.q = c::operand_of(a.q, "q"),
                                      .k = c::operand_of(a.k, "k"),
                                      .v = c::operand_of(a.v, "v"),
                                      .scale = c::scale_of(a.scale, a.q.columns)};
    c::check_shapes(operands, {}, c::output_of(need(out, "out"), "out"));
    check_layout(a);
    const OwnedPlan layout = layout_of(a);
    Score<float> score = {operands, layout.plan()};
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
