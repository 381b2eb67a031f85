// Tiles in shared memory, products of tiles in the registers of a warp, and loads and stores of
// rows of any type. Lane l of a warp holds the elements (g, 2t), (g, 2t + 1), (g + 8, 2t) and
// (g + 8, 2t + 1) of each 16 x 8 part of a product, g = l / 4 and t = l mod 4.
#pragma once

#include <cmath>
#include <type_traits>

#include "sextant/attention/cuda/kernels/device.cuh"

namespace sextant::cuda {

template <class T>
inline constexpr Stored kStoredAs = std::is_same_v<T, Bf16>   ? Stored::kBfloat16
                                    : std::is_same_v<T, Fp16> ? Stored::kFloat16
                                                              : Stored::kFloat32;

// The elements from one row of a tile to the next: rows begin on 16 bytes, and those of 8
// neighbours lie in different banks.
template <class T, int kWidth>
inline constexpr int kRowOf = kWidth + 16 / static_cast<int>(sizeof(T));

// Calls f(n, e) for the elements of a lane in `kFragments` parts of a product. Registers are
// indexed, so the loops are unrolled.
template <int kFragments, class F>
SEXTANT_DEVICE void each_element(const F& f) {
  SEXTANT_UNROLL
  for (int n = 0; n < 4 * kFragments; ++n) f(n / 4, n % 4);
}

SEXTANT_DEVICE int lane_row(int e) { return thread() % 32 / 4 + 8 * (e / 2); }
SEXTANT_DEVICE int lane_column(int e) { return 2 * (thread() % 4) + e % 2; }

template <class T>
SEXTANT_DEVICE T* shared_at(int32_t bytes) {
  return reinterpret_cast<T*>(shared_memory() + bytes);
}

SEXTANT_DEVICE int64_t place_of(const Rows& x, int64_t b, int64_t h, int64_t row, int64_t column) {
  return b * x.batch_stride + h * x.head_stride + row * x.row_stride + column * x.column_stride;
}
SEXTANT_DEVICE float element(const Rows& x, int64_t at) {
  switch (x.type) {
    case Stored::kBfloat16:
      return to_float(static_cast<const Bf16*>(x.data)[at]);
    case Stored::kFloat16:
      return to_float(static_cast<const Fp16*>(x.data)[at]);
    case Stored::kFloat64:
      return static_cast<float>(static_cast<const double*>(x.data)[at]);
    default:
      return static_cast<const float*>(x.data)[at];
  }
}
SEXTANT_DEVICE void set_element(const Rows& x, int64_t at, float value) {
  switch (x.type) {
    case Stored::kBfloat16:
      static_cast<Bf16*>(x.data)[at] = narrow<Bf16>(value);
      break;
    case Stored::kFloat16:
      static_cast<Fp16*>(x.data)[at] = narrow<Fp16>(value);
      break;
    default:
      static_cast<float*>(x.data)[at] = value;
  }
}

// The row of [batch, heads, queries] of a query.
SEXTANT_DEVICE int64_t query_index(const Arguments& a, int64_t b, int64_t h, int64_t i) {
  return (b * a.heads + h) * a.queries + i;
}

SEXTANT_DEVICE float& lse_at(const Arguments& a, int64_t b, int64_t h, int64_t i) {
  return static_cast<float*>(a.lse.data)[place_of(a.lse, b, h, i, 0)];
}

// The sink of a query, where there is one.
SEXTANT_DEVICE float sink_of(const Arguments& a, int64_t b, int32_t h, int64_t i) {
  return a.query_sink ? element(a.query_sink, place_of(a.query_sink, b, h, i, 0)) : a.sink[h];
}

SEXTANT_DEVICE bool is_finite(float x) { return x - x == 0; }

// Copies rows of x to a tile of `rows` rows: row r is row row_of(r) of x, or zeros if that is below
// 0. Columns beyond those of x are zeros. Returns whether this thread met an infinity or NaN.
template <class T, class RowOf>
SEXTANT_DEVICE bool load_rows(T* to, int row, int rows, int columns16, const Rows& x, int64_t b,
                              int64_t h, const RowOf& row_of) {
  bool found = false;
  constexpr int kTogether = 16 / static_cast<int>(sizeof(T));
  if (x.aligned != 0 && x.type == kStoredAs<T>) {
    const int words = columns16 / kTogether;
    const T* const base = static_cast<const T*>(x.data) + b * x.batch_stride + h * x.head_stride;
    for (int n = thread(); n < rows * words; n += threads()) {
      const int r = n / words, c = n % words * kTogether;
      const int64_t from = row_of(r);
      T* const into = to + r * row + c;
      if (from >= 0 && c < x.columns) {
        *reinterpret_cast<Copy16*>(into) =
            *reinterpret_cast<const Copy16*>(base + from * x.row_stride + c);
        SEXTANT_UNROLL
        for (int e = 0; e < kTogether; ++e) found |= !is_finite(to_float(into[e]));
      } else {
        SEXTANT_UNROLL
        for (int e = 0; e < kTogether; ++e) into[e] = narrow<T>(0);
      }
    }
    return found;
  }
  const int64_t base = b * x.batch_stride + h * x.head_stride;
  for (int n = thread(); n < rows * columns16; n += threads()) {
    const int r = n / columns16, c = n % columns16;
    const int64_t from = row_of(r);
    const float value = from >= 0 && c < x.columns
                            ? element(x, base + from * x.row_stride + c * x.column_stride)
                            : 0.0F;
    found |= !is_finite(value);
    to[r * row + c] = narrow<T>(value);
  }
  return found;
}

// c += a b, where a is a tile of 16 rows (or, transposed, of `depth` rows of 16), and b of
// 8 `parts` rows, or, transposed, of `depth` rows. depth is a multiple of 16. `guarded`: an element
// of a that is 0 adds nothing, whatever b holds.
//
// The sum over the tile is added to c as a whole, so that errors stay small. It has eight parts, in
// the order in which lanes sum the elements of a row (take_weights), so that the weights of a query
// sum to the total by which they are divided. With kInOrder it has one part: rows by diagonal begin
// at places that depend on the query, and zeros between their elements then change no bit.
template <bool kTransposedA, bool kTransposedB, bool kInOrder, int kFragments, class T>
SEXTANT_DEVICE void multiply_each(float (&c)[kFragments][4], const T* a, int a_row, const T* b,
                                  int b_row, int depth, int parts, bool guarded) {
  constexpr int kEvery = kInOrder ? 1 : 8, kNext = kInOrder ? 1 : 2;
  const auto at = [](const T* x, int row, bool transposed, int m, int k) {
    return to_float(transposed ? x[k * row + m] : x[m * row + k]);
  };
  SEXTANT_UNROLL
  for (int n = 0; n < kFragments; ++n) {
    if (n >= parts) break;
    float all[4] = {}, half[4] = {};
    SEXTANT_ROLL
    for (int m = 0; m < kEvery; m += kNext) {
      float sums[2][4] = {};  // of each eighth product, or of all
      for (int k = m; k < depth; k += kEvery) {
        SEXTANT_UNROLL
        for (int next = 0; next < kNext; ++next) {
          const float low = at(a, a_row, kTransposedA, lane_row(0), k + next);
          const float high = at(a, a_row, kTransposedA, lane_row(2), k + next);
          const float first = at(b, b_row, kTransposedB, 8 * n + lane_column(0), k + next);
          const float second = at(b, b_row, kTransposedB, 8 * n + lane_column(1), k + next);
          if (!guarded || low != 0) {
            sums[next][0] = fmaf(low, first, sums[next][0]);
            sums[next][1] = fmaf(low, second, sums[next][1]);
          }
          if (!guarded || high != 0) {
            sums[next][2] = fmaf(high, first, sums[next][2]);
            sums[next][3] = fmaf(high, second, sums[next][3]);
          }
        }
      }
      SEXTANT_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float pair = sums[0][e] + sums[1][e];
        half[e] = m % 4 == 0 ? pair : half[e] + pair;
        if (m == 2) all[e] = half[e];
      }
    }
    SEXTANT_UNROLL
    for (int e = 0; e < 4; ++e) c[n][e] += all[e] + half[e];
  }
}

template <bool kTransposedA, bool kTransposedB, bool kInOrder = false, int kFragments, class T>
SEXTANT_DEVICE void multiply(float (&c)[kFragments][4], const T* a, int a_row, const T* b,
                             int b_row, int depth, int parts, bool guarded = false) {
  if constexpr (std::is_same_v<T, float>) {
    multiply_each<kTransposedA, kTransposedB, kInOrder>(c, a, a_row, b, b_row, depth, parts,
                                                        guarded);
  } else {
    if (guarded) {
      multiply_each<kTransposedA, kTransposedB, kInOrder>(c, a, a_row, b, b_row, depth, parts,
                                                          true);
      return;
    }
    for (int k = 0; k < depth; k += 16) {
      uint32_t part_of_a[4];
      load_a<kTransposedA>(part_of_a, a + (kTransposedA ? k * a_row : k), a_row);
      SEXTANT_UNROLL
      for (int n = 0; n < kFragments; ++n) {
        if (n >= parts) break;
        uint32_t part_of_b[2];
        load_b<kTransposedB>(part_of_b, b + (kTransposedB ? k * b_row + 8 * n : 8 * n * b_row + k),
                             b_row);
        mma(c[n], part_of_a, part_of_b, T{});
      }
    }
  }
}

template <int kFragments>
SEXTANT_DEVICE void clear(float (&c)[kFragments][4]) {
  SEXTANT_UNROLL
  for (int n = 0; n < kFragments; ++n) c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
}

// The product of 16 rows with 8 `parts` rows of a table, written to `to`, [16][to_row].
template <class T>
SEXTANT_DEVICE void multiply_to(float* to, int to_row, const T* a, int a_row, const T* b, int b_row,
                                int depth, int parts) {
  for (int n = 0; n < parts; ++n) {
    float c[1][4] = {};
    multiply<false, false>(c, a, a_row, b + 8 * n * b_row, b_row, depth, 1);
    SEXTANT_UNROLL
    for (int e = 0; e < 4; ++e) to[lane_row(e) * to_row + 8 * n + lane_column(e)] = c[0][e];
  }
}

// The sums over the lanes of a row, which are four neighbours.
SEXTANT_DEVICE float sum_of_row(float x) {
  x += shuffle_xor(x, 1);
  return x + shuffle_xor(x, 2);
}
SEXTANT_DEVICE float most_of_row(float x) {
  x = fmaxf(x, shuffle_xor(x, 1));
  return fmaxf(x, shuffle_xor(x, 2));
}

}  // namespace sextant::cuda
