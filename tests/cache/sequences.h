// Random sequences, caches that hold them, and attention over such a cache.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/cache/kv_cache.h"
#include "tests/attention/tensor.h"

namespace sextant::testing {

using oracle::Tensor;

constexpr int64_t kHeads = 2, kColumns = 8, kValueColumns = 5;
constexpr KvCacheShape kShape = {
    .key_heads = kHeads, .key_columns = kColumns, .value_columns = kValueColumns, .page_rows = 16};

inline Tensor<float> random(int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                            uint64_t seed) {
  Tensor<float> x(batch, heads, rows, columns);
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> normal;
  for (float& element : x.data) element = normal(engine);
  return x;
}

// Rows [first, last) of a tensor.
inline View<const float> part(const Tensor<float>& x, int64_t first, int64_t last) {
  View<const float> view = x.view();
  view.data = view.at(0, 0, first);
  view.rows = last - first;
  return view;
}

struct Rows {
  Tensor<float> k, v;

  Rows(int64_t rows, uint64_t seed)
      : k(random(1, kHeads, rows, kColumns, seed)),
        v(random(1, kHeads, rows, kValueColumns, seed + 1000)) {}
};

inline Rows read(const KvCache& cache, int64_t sequence) {
  Rows rows(cache.rows(sequence), 0);
  cache.read(sequence, 0, rows.k.view(), rows.v.view());
  return rows;
}

inline int64_t filled(KvCache& cache, const Rows& rows, int64_t first_position = 0,
                      const std::optional<Rotation>& rotated_keys = {}) {
  const int64_t sequence = cache.add(first_position, rotated_keys);
  cache.append(sequence, rows.k.view(), rows.v.view());
  return sequence;
}

inline double largest_difference(const Tensor<float>& a, const Tensor<float>& b) {
  EXPECT_EQ(a.data.size(), b.data.size());
  double most = 0;
  for (size_t n = 0; n < a.data.size(); ++n)
    most = std::max(most, std::abs(static_cast<double>(a.data[n]) - b.data[n]));
  return most;
}

inline Rotation rope(double stretch = 1) {
  Spectrum spectrum = rotary({.dim = kColumns});
  for (Spectrum::Pair& pair : spectrum.pairs) pair.frequency = pair.frequency / Real(stretch);
  spectrum.gain = 1 + 0.1 * std::log(stretch);
  return rotation(spectrum);
}

struct Model1 {
  Rows rows;
  Tensor<float> q;

  Model1(int64_t length, uint64_t seed)
      : rows(length, seed), q(random(1, 2 * kHeads, length, kColumns, seed + 2000)) {}
};

// Attention of the latest queries of a batch of cached sequences, on the cpu backend.
inline Tensor<float> attend_cached(const KvCache& cache,
                                   const std::vector<CachedBatch::Entry>& entries,
                                   const Tensor<float>& q) {
  const CachedBatch batch(cache, entries, q.rows);
  Score<float> score = {{.q = q.view(), .scale = 0.3}};
  batch.place(score);
  oracle::Result<float> result;
  result.out = Tensor<float>(q.batch, q.heads, q.rows, kValueColumns);
  result.lse = Tensor<float>(q.batch, q.heads, q.rows, 1);
  attend<float>(score, {result.out.view(), result.lse.view()}, cpu_backend(), serial_executor());
  return result.out;
}

inline Tensor<float> copied(const View<const float>& view) {
  const HostView x(view);
  Tensor<float> to(x.batch, x.heads, x.rows, x.columns);
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.rows; ++i)
        for (int64_t c = 0; c < x.columns; ++c) to(b, h, i, c) = x(b, h, i, c);
  return to;
}

}  // namespace sextant::testing
