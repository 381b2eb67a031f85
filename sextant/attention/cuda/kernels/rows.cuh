// Kernels over rows: cos and sin of rotary phases, rotation, gathering from pages, and the sums of
// gradients that are rotated back.
#pragma once

#include "sextant/attention/cuda/kernels/tile.cuh"

namespace sextant::cuda {

SEXTANT_DEVICE int64_t grid_thread() { return block().x * threads() + thread(); }
SEXTANT_DEVICE int64_t grid_threads() { return blocks() * threads(); }

// Sets each element of `to`, [batch, heads, rows, columns], to a value.
SEXTANT_KERNEL void fill(const Arguments a) {
  const int64_t of_head = a.rows * a.to.columns;
  for (int64_t n = grid_thread(); n < of_head; n += grid_threads())
    set_element(
        a.to,
        place_of(a.to, block().z, block().y, a.first_row + n / a.to.columns, n % a.to.columns),
        a.value);
}

// cos and sin, times the gain, of the phase of each pair at each row. A phase is a fraction of a
// turn with 64 bits, so it is exact at any position (position/turns.h).
SEXTANT_KERNEL void angles(const Arguments a) {
  __extension__ using Wide = unsigned __int128;
  __extension__ using Signed = __int128;
  const int64_t all = a.rows * a.pair_count;
  for (int64_t n = grid_thread(); n < all; n += grid_threads()) {
    const int64_t row = n / a.pair_count, f = n % a.pair_count;
    const PairFrequency& pair = a.pairs[f];
    const int64_t time =
        a.times.at[block().y * a.times.batch_stride + pair.axis * a.times.rows + row];
    const Wide frequency = static_cast<Wide>(pair.frequency_high) << 64 | pair.frequency_low;
    const Wide offset = static_cast<Wide>(pair.offset_high) << 64 | pair.offset_low;
    const Wide phase = frequency * static_cast<Wide>(static_cast<Signed>(time)) + offset;
    // The nearest quarter turn, and the rest, in half turns, between -1/4 and 1/4.
    const auto turns = static_cast<uint64_t>(phase >> 64);
    const uint64_t quarter = (turns + (uint64_t{1} << 61)) >> 62;
    const auto rest = static_cast<int64_t>(turns - (quarter << 62));
    double cos = 0, sin = 0;
    cos_sin_of_half_turns(static_cast<double>(rest) * 0x1p-63, cos, sin);
    const double c = quarter % 2 == 0 ? cos : sin, s = quarter % 2 == 0 ? sin : cos;
    float* const to = a.angles + block().y * a.angles_of_batch + 2 * n;
    to[0] = static_cast<float>(a.gain * (quarter == 1 || quarter == 2 ? -c : c));
    to[1] = static_cast<float>(a.gain * (quarter >= 2 ? -s : s));
  }
}

// The place of a row of keys or values: in a page, or at row `row` of the entry.
struct RowInPages {
  int64_t entry, row;
};
SEXTANT_DEVICE RowInPages in_pages(const PageTable& pages, int64_t b, int64_t row) {
  if (pages.page_rows == 0) return {b, row};
  return {pages.at[b * pages.batch_stride + row / pages.page_rows], row % pages.page_rows};
}
SEXTANT_DEVICE float element_in_pages(const Arguments& a, RowInPages at, int64_t h, int c) {
  if (a.pages.page_rows == 0 || at.entry >= 0)
    return element(a.from, place_of(a.from, at.entry, h, at.row, c));
  const int64_t page = -1 - at.entry;
  const int8_t number =
      static_cast<const int8_t*>(a.pages.int8.data)[place_of(a.pages.int8, page, h, at.row, c)];
  return static_cast<float>(number) *
         element(a.pages.scale, place_of(a.pages.scale, page, h, at.row, c));
}

// to = the rows of `from`, rotated by the angles if there are any, rotated back with `backward`.
// With `accumulate` they are added. Columns beyond those of `from` become zeros.
SEXTANT_KERNEL void rotate(const Arguments a) {
  const int64_t all = a.rows * a.to.columns;
  const int32_t b = block().z, h = block().y;
  for (int64_t n = grid_thread(); n < all; n += grid_threads()) {
    const int64_t row = a.first_row + n / a.to.columns;
    const int c = static_cast<int>(n % a.to.columns);
    float value = 0;
    if (c < a.from.columns) {
      const RowInPages at = in_pages(a.pages, b, row);
      value = element_in_pages(a, at, h, c);
      if (a.angles && a.channels[c].pair >= 0) {
        const Channel& channel = a.channels[c];
        const float* const angle =
            a.angles + b * a.angles_of_batch + 2 * (row * a.pair_count + channel.pair);
        const float sine = (a.backward != 0 ? -channel.sign : channel.sign) * angle[1];
        value = value * angle[0] + sine * element_in_pages(a, at, h, channel.partner);
      }
    }
    const int64_t to = place_of(a.to, b, h, row, c);
    set_element(a.to, to, a.accumulate != 0 ? element(a.to, to) + value : value);
  }
}

}  // namespace sextant::cuda
