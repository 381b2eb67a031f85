// Problems of decoding in C, and the same in C++.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/c/handles.h"
#include "sextant/cache/kv_cache.h"

namespace sextant::testing {

constexpr int64_t kQueryHeads = 4, kKeyHeads = 2, kKeyColumns = 16, kValues = 8, kBuckets = 32;

// Sequences in a cache, what their queries see, and the terms.
struct Decoded {
  std::vector<int64_t> rows;
  int64_t queries = 1, window = 0;
  std::vector<int64_t> counts = {};
  sextant_dtype dtype = SEXTANT_FLOAT32;
  bool rope = true, rotated_keys = false, alibi = false, t5 = false, on_key = false, sink = false;
  double softcap = 0;
};

inline std::vector<Decoded> decoded_problems() {
  const int64_t same = kQueryHeads;
  return {{.rows = {700, 300, 1}, .window = 0},
          {.rows = {700, 300, 1}, .window = 1, .alibi = true},
          {.rows = {300, 300}, .queries = 2, .window = 300, .sink = true, .softcap = 3},
          {.rows = {300, 20}, .window = 1000, .dtype = SEXTANT_BFLOAT16, .t5 = true},
          {.rows = {600, 513}, .window = 100, .dtype = SEXTANT_INT8, .alibi = true, .sink = true},
          {.rows = {600, 20}, .window = 90, .rotated_keys = true, .softcap = 2},
          {.rows = {same, same, same, same}, .queries = same, .window = same, .t5 = true},
          {.rows = {400, 60, 9}, .queries = 9, .window = 64, .counts = {1, 0, 9}, .alibi = true},
          {.rows = {300, 50}, .queries = 3, .counts = {3, 2}, .rope = false, .on_key = true},
          {.rows = {}, .window = 5}};
}

inline std::string name_of(const Decoded& p) {
  return "rows " + (p.rows.empty() ? "none" : std::to_string(p.rows[0])) + ", window " +
         std::to_string(p.window) + ", queries " + std::to_string(p.queries);
}

inline float wave(size_t n, double step) {
  return static_cast<float>(std::sin(step * double(n + 1)));
}

struct Deleters {
  void operator()(sextant_cache* cache) const { sextant_cache_destroy(cache); }
  void operator()(sextant_rope* rope) const { sextant_rope_destroy(rope); }
  void operator()(sextant_decode_plan* plan) const { sextant_decode_plan_destroy(plan); }
};
template <class T>
using Own = std::unique_ptr<T, Deleters>;

inline void expect_refusal(sextant_status status, const char* reason) {
  EXPECT_EQ(status, SEXTANT_BAD_ARGUMENT);
  EXPECT_THAT(sextant_error(), ::testing::HasSubstr(reason));
}

#define EXPECT_OK(call) EXPECT_EQ(call, SEXTANT_OK) << sextant_error()

class InC {
 public:
  explicit InC(const Decoded& problem) : p(problem), batch(std::ssize(p.rows)) {
    sextant_rope* new_rope = nullptr;
    EXPECT_OK(sextant_rope_create(kKeyColumns, 10000, SEXTANT_HALF_SPLIT, 0, &new_rope));
    rope.reset(new_rope);
    sextant_cache* new_cache = nullptr;
    const sextant_cache_shape shape = {.size = sizeof shape,
                                       .key_heads = kKeyHeads,
                                       .key_columns = kKeyColumns,
                                       .value_columns = kValues,
                                       .page_rows = 64,
                                       .dtype = p.dtype};
    EXPECT_OK(sextant_cache_create(&shape, &new_cache));
    cache.reset(new_cache);
    for (const int64_t length : p.rows) {
      int64_t id = -1;
      EXPECT_OK(p.rotated_keys ? sextant_cache_add_rotated_keys(cache.get(), 5, rope.get(), &id)
                               : sextant_cache_add(cache.get(), 5, &id));
      sequences.push_back(id);
      append(id, length);
    }
    q.resize(static_cast<size_t>(batch * kQueryHeads * p.queries * kKeyColumns + 1));
    for (size_t n = 0; n < q.size(); ++n) q[n] = wave(n, 0.7);
    sink.assign(kQueryHeads, 0.25F);
    if (p.sink) terms.sink = sink.data();
    terms.softcap = p.softcap;
  }

  void append(int64_t sequence, int64_t length) {
    std::vector<float> k(static_cast<size_t>(kKeyHeads * length * kKeyColumns));
    std::vector<float> v(static_cast<size_t>(kKeyHeads * length * kValues));
    for (size_t n = 0; n < k.size(); ++n) k[n] = wave(n, 0.31 + 0.1 * double(sequence));
    for (size_t n = 0; n < v.size(); ++n) v[n] = wave(n, 0.17);
    const sextant_array keys =
        sextant_contiguous(k.data(), SEXTANT_FLOAT32, 1, kKeyHeads, length, kKeyColumns);
    const sextant_array values =
        sextant_contiguous(v.data(), SEXTANT_FLOAT32, 1, kKeyHeads, length, kValues);
    EXPECT_OK(sextant_cache_append(cache.get(), sequence, &keys, &values));
  }

  sextant_array q_array() const {
    return sextant_contiguous(q.data(), SEXTANT_FLOAT32, batch, kQueryHeads, p.queries,
                              kKeyColumns);
  }
  const int64_t* counts() const { return p.counts.empty() ? nullptr : p.counts.data(); }
  const sextant_rope* used_rope() const { return p.rope ? rope.get() : nullptr; }
  sextant_decoding decoding() const {
    SEXTANT_NEW(sextant_decoding, d);
    d.q = q_array();
    d.sequences = sequences.data();
    d.queries = counts();
    d.window = p.window;
    d.rope = used_rope();
    d.terms = &terms;
    return d;
  }

  // Tables for these diagonals.
  void set_tables(int64_t farthest, int64_t count) {
    bias.assign(static_cast<size_t>(kQueryHeads * std::max<int64_t>(count, kBuckets)), 0);
    rows.assign(static_cast<size_t>(count), 0);
    if (p.alibi) {
      EXPECT_OK(sextant_alibi_terms(kQueryHeads, 8, farthest, count, bias.data(), &terms));
    }
    if (p.t5) {
      EXPECT_OK(sextant_t5_rows(kBuckets, 128, 0, farthest, count, rows.data()));
      for (size_t n = 0; n < bias.size(); ++n) bias[n] = wave(n, 0.9);
      terms.bias = {sextant_contiguous(bias.data(), SEXTANT_FLOAT32, 1, kQueryHeads, kBuckets, 1),
                    rows.data()};
    }
    if (p.on_key) {
      table.resize(static_cast<size_t>(count * kKeyColumns));
      for (size_t n = 0; n < table.size(); ++n)
        table[n] = wave(n % kKeyColumns + static_cast<size_t>(farthest) - n / kKeyColumns, 0.2);
      terms.on_key = {sextant_contiguous(table.data(), SEXTANT_FLOAT32, 1, 1, count, kKeyColumns),
                      nullptr};
    }
  }

  sextant_decode_plan_options options() const {
    SEXTANT_NEW(sextant_decode_plan_options, o);
    o.sequences = sequences.data();
    o.count = batch;
    o.heads = kQueryHeads;
    o.queries = p.queries;
    o.most_rows = 720;
    o.window = p.window;
    o.rope = used_rope();
    o.terms = &terms;
    return o;
  }
  // The plan, and tables for its diagonals.
  Own<sextant_decode_plan> plan(int threads = 0) {
    const int64_t count = p.window > 0 && batch > 0 ? std::min<int64_t>(p.window, 720) : 720;
    set_tables(count - 1, count);
    sextant_decode_plan_options o = options();
    o.threads = threads;
    sextant_decode_plan* made = nullptr;
    EXPECT_OK(sextant_decode_plan_create(cache.get(), &o, &made));
    return Own<sextant_decode_plan>(made);
  }
  sextant_decode_plan_call call() const {
    SEXTANT_NEW(sextant_decode_plan_call, c);
    c.q = q_array();
    c.terms = &terms;
    return c;
  }

  const Decoded& p;
  int64_t batch;
  Own<sextant_rope> rope;
  Own<sextant_cache> cache;
  std::vector<int64_t> sequences;
  std::vector<float> q, sink, bias, table;
  std::vector<int32_t> rows;
  sextant_terms terms = {sizeof(sextant_terms)};
};

struct DecodedResults {
  std::vector<float> out, lse;
  sextant_array out_array, lse_array;

  explicit DecodedResults(const InC& c)
      : out(static_cast<size_t>(c.batch * kQueryHeads * c.p.queries * kValues + 1), 77),
        lse(static_cast<size_t>(c.batch * kQueryHeads * c.p.queries + 1), 77),
        out_array(sextant_contiguous(out.data(), SEXTANT_FLOAT32, c.batch, kQueryHeads, c.p.queries,
                                     kValues)),
        lse_array(sextant_contiguous(lse.data(), SEXTANT_FLOAT32, c.batch, kQueryHeads, c.p.queries,
                                     1)) {}
  DecodedResults(const DecodedResults&) = delete;

  friend bool operator==(const DecodedResults& a, const DecodedResults& b) {
    return a.out == b.out && a.lse == b.lse;
  }
};

// The same in C++, with the tables of decoding_diagonals.
inline void attend_in_cpp(InC& c, DecodedResults& to) {
  std::vector<CachedBatch::Entry> entries;
  for (const int64_t sequence : c.sequences)
    entries.push_back({sequence, c.p.rope ? c.rope->rotation.get() : nullptr, c.p.window});
  const CachedBatch batch(c.cache->cache, entries, c.p.queries, c.p.counts);
  Score<float> score;
  score.q = contiguous<const float>(c.q.data(), {c.batch, kQueryHeads, c.p.queries, kKeyColumns});
  score.scale = 0.25;
  batch.place(score);
  const Diagonals& diagonals = score.diagonals;
  std::vector<float> bias;
  if (c.p.alibi) {
    double slopes[kQueryHeads];
    EXPECT_OK(sextant_alibi_slopes(kQueryHeads, 8, slopes));
    bias = by_distance(diagonals, kQueryHeads,
                       [&](int64_t h, int64_t d) { return -slopes[h] * double(d); });
    score.bias = contiguous<const float>(bias.data(), {1, kQueryHeads, diagonals.count, 1});
  }
  if (c.p.t5) {
    score.bias = contiguous<const float>(c.bias.data(), {1, kQueryHeads, kBuckets, 1});
    score.row_at.bias = {c.rows.data(), static_cast<size_t>(diagonals.count)};
  }
  if (c.p.on_key)
    score.on_key = contiguous<const float>(c.table.data(), {1, 1, diagonals.count, kKeyColumns});
  if (c.p.sink) score.sink = c.sink;
  score.softcap = c.p.softcap;
  attend<float>(score,
                {contiguous(to.out.data(), {c.batch, kQueryHeads, c.p.queries, kValues}),
                 contiguous(to.lse.data(), {c.batch, kQueryHeads, c.p.queries, 1})},
                cpu_backend());
}

}  // namespace sextant::testing
