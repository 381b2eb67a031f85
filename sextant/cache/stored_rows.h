// Rows as a cache stores them: copies between types, rotations, and the check that a type holds
// what is stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "sextant/attention/plan.h"
#include "sextant/attention/rotary/cos_sin.h"
#include "sextant/base/view.h"

namespace sextant::stored_rows {

// Copies one row of all heads, rounded to the type of `to`.
void copy_row(const AnyView<const float>& from, StoredRow source, const AnyView<float>& to,
              StoredRow target);

// Throws Error unless `dtype` holds every finite element of batch entry b, rounded: a finite number
// never becomes infinite. `name` is that of the operand.
void check_fits(const char* name, const AnyView<const float>& x, int64_t b, DType dtype);

// Throws Error if an element of batch entry b is infinite or NaN, which int8 cannot hold.
void check_finite(const char* name, const AnyView<const float>& x, int64_t b);

// Whether `dtype` stores a finite x as infinity.
bool overflows(double x, DType dtype);
// "NAME: expected ..., which TYPE holds, but got VALUE at head, row, column"
[[noreturn]] void refuse_overflow(const std::string& name, DType dtype, double value, int64_t head,
                                  int64_t row, int64_t column);

// A change of rotation of `count` consecutive rows: `from` (null: none) has rotated them, the first
// one at from_position, and they become as if rotated by `to`, the first one at to_position. The
// angle is a difference of exact phases: it has no error, however far apart the positions are.
struct Rerotation {
  const Rotation* from;
  int64_t from_position;
  const Rotation* to;
  int64_t to_position;
  int64_t count;
};

// Calls f(head, row, column, value) for each rotated element, both columns of a pair one after the
// other; read(head, row, column) is the element before. Rows are counted from the first.
template <class Read, class F>
void each_rotated(const Rerotation& r, int64_t heads, Read read, F f) {
  constexpr int64_t kRowsAtOnce = 256;
  const double gain = r.to->gain / (r.from ? r.from->gain : 1);
  for (int64_t first = 0; first < r.count; first += kRowsAtOnce) {
    const PositionRun run = {.first = r.to_position + first,
                             .count = std::min(kRowsAtOnce, r.count - first)};
    float cos[kRowsAtOnce], sin[kRowsAtOnce];
    for (size_t n = 0; n < r.to->pairs.size(); ++n) {
      const Rotation::Pair& pair = r.to->pairs[n];
      Turns frequency = pair.frequency, offset;
      if (r.from) {
        frequency = frequency - r.from->pairs[n].frequency;
        offset = r.from->pairs[n].frequency * (r.to_position - r.from_position);
      }
      cos_sin_of_positions(frequency, offset, {&run, 1}, cos, sin);
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < run.count; ++i) {
          const double c = cos[i], s = sin[i];
          const double x = read(h, first + i, pair.first), y = read(h, first + i, pair.second);
          f(h, first + i, pair.first, gain * (x * c - y * s));
          f(h, first + i, pair.second, gain * (x * s + y * c));
        }
    }
  }
}

}  // namespace sextant::stored_rows
