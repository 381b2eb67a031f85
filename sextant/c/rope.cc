// A rope is a Spectrum that becomes a Rotation, whose frequencies are exact turns. Tables are
// computed pair by pair and transposed.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "sextant/attention/rotary/cos_sin.h"
#include "sextant/attention/rotary/rotate.h"
#include "sextant/c/guard.h"
#include "sextant/c/handles.h"

using namespace sextant;
using sextant::c::guarded;
using sextant::c::need;

namespace {

constexpr int64_t kMostColumns = 1 << 20;

Pairing pairing_of(sextant_pairing pairing) {
  if (pairing == SEXTANT_HALF_SPLIT) return Pairing::kHalfSplit;
  if (pairing == SEXTANT_INTERLEAVED) return Pairing::kInterleaved;
  fail("rope: pairing: expected SEXTANT_HALF_SPLIT or SEXTANT_INTERLEAVED, but got " +
       std::to_string(static_cast<int>(pairing)));
}

void expect_between(const char* field, int64_t got, int64_t low, int64_t high) {
  if (got < low || got > high)
    fail(std::string("rope: ") + field + ": expected " + std::to_string(low) + " to " +
         std::to_string(high) + ", but got " + std::to_string(got));
}

void expect_finite(const char* field, double got) {
  if (!std::isfinite(got))
    fail(std::string("rope: ") + field + ": expected a finite number, but got " +
         std::to_string(got));
}

Spectrum spectrum_of_columns(int64_t columns, double base, sextant_pairing pairing,
                             int64_t first_column) {
  expect_between("columns", columns, 0, kMostColumns);
  expect_between("first_column", first_column, 0, kMostColumns);
  if (columns % 2 != 0)
    fail("rope: columns: expected an even number, but got " + std::to_string(columns));
  return rotary(
      {.dim = columns, .base = base, .pairing = pairing_of(pairing), .first_column = first_column});
}

// Transposes rows of one pair each, as cos and sin are computed.
void store_column(const std::vector<float>& values, size_t pair, size_t pairs, float* table) {
  for (size_t n = 0; n < values.size(); ++n) table[n * pairs + pair] = values[n];
}

}  // namespace

namespace sextant::c {

const Rotation* rotation_of(const sextant_rope* rope) {
  return rope ? need(rope, "rope").rotation.get() : nullptr;
}

}  // namespace sextant::c

sextant_status sextant_rope_create(int64_t columns, double base, sextant_pairing pairing,
                                   int64_t first_column, sextant_rope** rope) {
  return guarded([&] {
    const Spectrum spectrum = spectrum_of_columns(columns, base, pairing, first_column);
    c::give_rope(rope, spectrum);
  });
}

sextant_status sextant_rope_create_from_frequencies(const double* frequencies, int64_t pairs,
                                                    double gain, sextant_pairing pairing,
                                                    int64_t first_column, sextant_rope** rope) {
  return guarded([&] {
    expect_between("pairs", pairs, 0, kMostColumns / 2);
    expect_finite("gain", gain);
    Spectrum spectrum = spectrum_of_columns(2 * pairs, 1, pairing, first_column);
    if (pairs > 0) need(frequencies, "rope: frequencies");
    for (int64_t f = 0; f < pairs; ++f)
      spectrum.pairs[static_cast<size_t>(f)].frequency = {frequencies[f], 0};
    spectrum.gain = gain;
    c::give_rope(rope, spectrum);
  });
}

sextant_status sextant_rope_create_from_pairs(const sextant_pair* pairs, int64_t count, double gain,
                                              sextant_rope** rope) {
  return guarded([&] {
    expect_between("count", count, 0, kMostColumns / 2);
    expect_finite("gain", gain);
    if (count > 0) need(pairs, "rope: pairs");
    Spectrum spectrum = {.pairs = {}, .gain = gain};
    for (const sextant_pair& pair : std::span(pairs, static_cast<size_t>(count))) {
      expect_between("pairs: first", pair.first, 0, kMostColumns);
      expect_between("pairs: second", pair.second, 0, kMostColumns);
      expect_between("pairs: axis", pair.axis, 0, 7);
      expect_finite("pairs: growth", pair.growth);
      spectrum.pairs.push_back({.first = static_cast<int>(pair.first),
                                .second = static_cast<int>(pair.second),
                                .frequency = {pair.frequency, 0},
                                .growth = pair.growth,
                                .axis = static_cast<int>(pair.axis)});
    }
    c::give_rope(rope, spectrum);
  });
}

void sextant_rope_destroy(sextant_rope* rope) { c::destroy(rope, "rope"); }

int64_t sextant_rope_pairs(const sextant_rope* rope) {
  return rope ? static_cast<int64_t>(rope->rotation->pairs.size()) : 0;
}

double sextant_rope_gain(const sextant_rope* rope) { return rope ? rope->rotation->gain : 1; }

sextant_status sextant_rope_columns(const sextant_rope* rope, int64_t pair, int64_t* first,
                                    int64_t* second) {
  return guarded([&] {
    need(rope, "rope");
    expect_between("pair", pair, 0, sextant_rope_pairs(rope) - 1);
    const Rotation::Pair& columns = rope->rotation->pairs[static_cast<size_t>(pair)];
    int64_t& to = need(second, "second");
    need(first, "first") = columns.first;
    to = columns.second;
  });
}

sextant_status sextant_rope_tables(const sextant_rope* rope, int64_t first_position, int64_t count,
                                   float* cos, float* sin) {
  return guarded([&] {
    const auto& pairs = need(rope, "rope").rotation->pairs;
    expect_between("first_position", first_position, -kFarthestPosition, kFarthestPosition);
    expect_between("count", count, 0, kFarthestPosition);
    if (count == 0 || pairs.empty()) return;
    need(cos, "cos"), need(sin, "sin");
    const PositionRun run[] = {{.first = first_position, .count = count}};
    std::vector<float> c(static_cast<size_t>(count)), s(static_cast<size_t>(count));
    for (size_t f = 0; f < pairs.size(); ++f) {
      cos_sin_of_positions(pairs[f].frequency, {}, run, c.data(), s.data());
      store_column(c, f, pairs.size(), cos);
      store_column(s, f, pairs.size(), sin);
    }
  });
}

sextant_status sextant_rope_rotate(const sextant_rope* rope, const sextant_array* x,
                                   const int64_t* positions, const sextant_pool* pool) {
  return guarded([&] {
    const Rotation& rotation = *need(rope, "rope").rotation;
    const HostView<float> views[] = {HostView(c::as_float(c::output_of(need(x, "x"), "x"), "x"))};
    const SideRotation side = {.rotation = &rotation,
                               .rotary_positions = &need(positions, "positions")};
    rotate_rows(views, side, c::executor_of(pool));
  });
}
