// The cache and decoding in C have the bits of C++.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/layouts.h"
#include "sextant/c/handles.h"
#include "sextant/cache/decoding.h"
#include "tests/base/allocations.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;

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

std::vector<Decoded> decoded_problems() {
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

std::string name_of(const Decoded& p) {
  return "rows " + (p.rows.empty() ? "none" : std::to_string(p.rows[0])) + ", window " +
         std::to_string(p.window) + ", queries " + std::to_string(p.queries);
}

float wave(size_t n, double step) { return static_cast<float>(std::sin(step * double(n + 1))); }

struct Deleters {
  void operator()(sextant_cache* cache) const { sextant_cache_destroy(cache); }
  void operator()(sextant_rope* rope) const { sextant_rope_destroy(rope); }
  void operator()(sextant_decode_plan* plan) const { sextant_decode_plan_destroy(plan); }
};
template <class T>
using Own = std::unique_ptr<T, Deleters>;

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
void attend_in_cpp(InC& c, DecodedResults& to) {
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

TEST(CDecoding, HasTheBitsOfCpp) {
  for (const Decoded& problem : decoded_problems()) {
    SCOPED_TRACE(name_of(problem));
    InC c(problem);
    int64_t farthest = -1, count = -1;
    const sextant_decoding d = c.decoding();
    ASSERT_EQ(sextant_decoding_diagonals(c.cache.get(), &d, &farthest, &count), SEXTANT_OK);
    c.set_tables(farthest, count);
    DecodedResults expected(c), once(c), planned(c), shared(c);
    attend_in_cpp(c, expected);
    EXPECT_OK(sextant_decode(c.cache.get(), &d, &once.out_array, &once.lse_array, nullptr));
    EXPECT_EQ(once, expected);

    for (const int threads : {0, 3}) {
      const Own<sextant_decode_plan> plan = c.plan(threads);
      ASSERT_NE(plan, nullptr);
      const sextant_decode_plan_call call = c.call();
      for (int step = 0; step < 2; ++step) {
        EXPECT_OK(sextant_decode_plan_step(plan.get(), c.cache.get(), c.counts()));
        EXPECT_OK(sextant_decode_plan_attend(plan.get(), c.cache.get(), &call, &planned.out_array,
                                             &planned.lse_array));
        EXPECT_EQ(planned, expected);
        std::vector<std::jthread> together;
        for (int ith = 0; ith < 3; ++ith)
          together.emplace_back([&, ith] {
            EXPECT_OK(sextant_decode_plan_attend_share(
                plan.get(), c.cache.get(), &call, &shared.out_array, &shared.lse_array, ith, 3));
          });
        together.clear();
        EXPECT_EQ(shared, expected);
      }
    }
  }
}

// Any number of threads reads one cache.
TEST(CDecoding, ThreadsDecodeFromOneCache) {
  const Decoded problem = {.rows = {300, 80}, .window = 100, .dtype = SEXTANT_INT8};
  InC c(problem);
  DecodedResults expected(c);
  attend_in_cpp(c, expected);
  std::vector<std::jthread> threads;
  for (int n = 0; n < 3; ++n)
    threads.emplace_back([&] {
      DecodedResults own(c);
      const sextant_decoding d = c.decoding();
      for (int call = 0; call < 20; ++call) {
        EXPECT_OK(sextant_decode(c.cache.get(), &d, &own.out_array, &own.lse_array, nullptr));
        EXPECT_EQ(own, expected);
        std::vector<float> k(kKeyHeads * 70 * kKeyColumns), v(kKeyHeads * 70 * kValues);
        const sextant_array keys =
            sextant_contiguous(k.data(), SEXTANT_FLOAT32, 1, kKeyHeads, 70, kKeyColumns);
        const sextant_array values =
            sextant_contiguous(v.data(), SEXTANT_FLOAT32, 1, kKeyHeads, 70, kValues);
        EXPECT_OK(sextant_cache_read(c.cache.get(), c.sequences[0], 5, &keys, &values));
      }
    });
}

TEST(CDecoding, AllocatesNothingFromTheSecondStepOn) {
  const Decoded problem = {.rows = {300, 80}, .window = 100, .alibi = true, .softcap = 3};
  InC c(problem);
  const Own<sextant_decode_plan> plan = c.plan(/*threads=*/2);
  DecodedResults results(c);
  const sextant_decode_plan_call call = c.call();
  std::vector<float> row(kKeyHeads * kKeyColumns, 0.5F);
  const sextant_array k =
      sextant_contiguous(row.data(), SEXTANT_FLOAT32, 1, kKeyHeads, 1, kKeyColumns);
  const sextant_array v = sextant_contiguous(row.data(), SEXTANT_FLOAT32, 1, kKeyHeads, 1, kValues);
  for (const int64_t sequence : c.sequences)
    EXPECT_OK(sextant_cache_reserve(c.cache.get(), sequence, 720));
  const auto step = [&] {
    for (const int64_t sequence : c.sequences)
      EXPECT_OK(sextant_cache_append(c.cache.get(), sequence, &k, &v));
    EXPECT_OK(sextant_decode_plan_step(plan.get(), c.cache.get(), nullptr));
    EXPECT_OK(
        sextant_decode_plan_attend(plan.get(), c.cache.get(), &call, &results.out_array, nullptr));
    for (const int ith : {1, 0})
      EXPECT_OK(sextant_decode_plan_attend_share(plan.get(), c.cache.get(), &call,
                                                 &results.out_array, nullptr, ith, 2));
  };
  for (int n = 0; n < 2; ++n) step();
  const int64_t before = allocations();
  for (int n = 0; n < 300; ++n) step();
  EXPECT_EQ(allocations() - before, 0);
}

TEST(CCache, IsReadSavedAndLoaded) {
  const Decoded problem = {.rows = {130, 5}, .dtype = SEXTANT_INT8};
  InC c(problem);
  int64_t pages = 0, bytes = 0, id = -1;
  EXPECT_OK(sextant_cache_memory(c.cache.get(), &pages, &bytes));
  EXPECT_EQ(pages, 3 + 1);  // of 64 rows, two of them integers
  const int64_t page = kKeyHeads * 64 * (kKeyColumns + kValues);
  EXPECT_GE(bytes, 2 * page + 2 * 2 * page);

  const auto path = std::filesystem::path(::testing::TempDir()) / "c_cache_test.kv";
  EXPECT_OK(sextant_cache_save(c.cache.get(), c.sequences[0], path.c_str()));
  InC other(problem);
  EXPECT_OK(sextant_cache_load(other.cache.get(), path.c_str(), &id));
  std::filesystem::remove(path);
  const auto read = [](const InC& from, int64_t sequence) {
    std::vector<float> all(kKeyHeads * 100 * (kKeyColumns + kValues));
    const sextant_array k =
        sextant_contiguous(all.data(), SEXTANT_FLOAT32, 1, kKeyHeads, 100, kKeyColumns);
    const sextant_array v = sextant_contiguous(all.data() + kKeyHeads * 100 * kKeyColumns,
                                               SEXTANT_FLOAT32, 1, kKeyHeads, 100, kValues);
    EXPECT_OK(sextant_cache_read(from.cache.get(), sequence, 30, &k, &v));
    return all;
  };
  EXPECT_NEAR(read(c, c.sequences[0])[0], wave(30 * kKeyColumns, 0.31), 0.02);
  EXPECT_EQ(read(other, id), read(c, c.sequences[0]));
}

void expect_refusal(sextant_status status, const char* reason) {
  EXPECT_EQ(status, SEXTANT_BAD_ARGUMENT);
  EXPECT_THAT(sextant_error(), HasSubstr(reason));
}

TEST(CDecoding, RefusesWhatDoesNotFit) {
  const Decoded problem = {.rows = {30, 5}, .queries = 2};
  InC c(problem);
  DecodedResults results(c);
  const auto decode = [&](const std::function<void(sextant_decoding&)>& change, const char* why) {
    sextant_decoding d = c.decoding();
    change(d);
    expect_refusal(sextant_decode(c.cache.get(), &d, &results.out_array, nullptr, nullptr), why);
  };
  const std::vector<int64_t> too_many = {2, 3}, longer = {2, 2};
  decode([](auto& d) { d.size = 0; }, "decoding.size: expected sizeof(sextant_decoding)");
  decode([](auto& d) { d.window = -1; }, "window: expected at least 0, but got -1");
  decode([](auto& d) { d.sequences = nullptr; }, "decoding: sequences: expected a pointer");
  decode([&](auto& d) { d.queries = too_many.data(); }, "counts: expected 0 to 2, but got 3");
  decode([&](auto& d) { d.sequences = longer.data(); }, "sequence");
  decode([&](auto& d) { d.q.data = results.out.data() + 3; }, "out: expected memory of its own");

  const auto create = [&](const std::function<void(sextant_decode_plan_options&)>& change,
                          const char* why) {
    sextant_decode_plan_options o = c.options();
    change(o);
    sextant_decode_plan* plan = nullptr;
    expect_refusal(sextant_decode_plan_create(c.cache.get(), &o, &plan), why);
    EXPECT_EQ(plan, nullptr);
  };
  create([](auto& o) { o.size = 8; }, "decode_plan_options.size");
  create([](auto& o) { o.count = -1; }, "decode plan: count: expected 0 to");
  create([](auto& o) { o.heads = 0; }, "decode plan: heads: expected 1 to");
  create([](auto& o) { o.queries = 0; }, "decode plan: queries: expected 1 to");
  create([](auto& o) { o.most_rows = 1; }, "decode plan: most_rows: expected 2 to");
  create([](auto& o) { o.window = -3; }, "decode plan: window: expected 0 to");
  create([](auto& o) { o.threads = -1; }, "decode plan: threads: expected 0 to 4096");

  const Own<sextant_decode_plan> plan = c.plan();
  const auto attend = [&](const std::function<void(sextant_terms&)>& change, const char* why) {
    sextant_terms terms = c.terms;
    change(terms);
    sextant_decode_plan_call call = c.call();
    call.terms = &terms;
    expect_refusal(
        sextant_decode_plan_attend(plan.get(), c.cache.get(), &call, &results.out_array, nullptr),
        why);
  };
  attend([](auto&) {}, "expected a step() that succeeds before it");
  EXPECT_OK(sextant_decode_plan_step(plan.get(), c.cache.get(), nullptr));
  const uint8_t mask[100] = {};
  const std::vector<int32_t> map(720);
  std::vector<float> bias(720);
  attend([&](auto& t) { t.mask = mask; }, "expected neither a mask nor a key_bias");
  attend([&](auto& t) { t.bias.rows = map.data(); }, "terms.bias.rows: expected NULL");
  attend(
      [&](auto& t) {
        t.bias.table = sextant_contiguous(bias.data(), SEXTANT_FLOAT32, 1, 1, 719, 1);
      },
      "bias.rows: expected 720");
  expect_refusal(sextant_decode_plan_step(plan.get(), c.cache.get(), too_many.data()),
                 "counts: expected 0 to 2, but got 3");
}

// Calls from within another call, by a pool whose threads are the caller's.
TEST(CDecoding, RefusesCallsBesideAnother) {
  const Decoded problem = {.rows = {700, 700}, .queries = 60};  // enough work for two threads
  InC c(problem);
  struct Beside {
    InC* c;
    sextant_decode_plan* plan;
    sextant_status append = SEXTANT_OK, step = SEXTANT_OK, rows = SEXTANT_INTERNAL;
  } beside = {&c, nullptr};
  SEXTANT_NEW(sextant_threads, threads);
  threads.workers = 2;
  threads.user = &beside;
  threads.run = [](void* user, int64_t tasks, sextant_task task, void* state) {
    Beside& b = *static_cast<Beside*>(user);
    if (b.plan) {
      b.step = sextant_decode_plan_step(b.plan, b.c->cache.get(), nullptr);
      int64_t rows = 0;
      b.rows = sextant_cache_rows(b.c->cache.get(), b.c->sequences[0], &rows);
#ifndef NDEBUG
      b.append = sextant_cache_truncate(b.c->cache.get(), b.c->sequences[0], 100);
#endif
    }
    for (int64_t n = 0; n < tasks; ++n) task(state, n, 0);
  };
  sextant_pool* pool = nullptr;
  EXPECT_OK(sextant_pool_create_from(&threads, &pool));
  {
    sextant_decode_plan_options o = c.options();
    o.pool = pool;
    sextant_decode_plan* made = nullptr;
    EXPECT_OK(sextant_decode_plan_create(c.cache.get(), &o, &made));
    const Own<sextant_decode_plan> plan(made);
    EXPECT_OK(sextant_decode_plan_step(made, c.cache.get(), nullptr));
    DecodedResults results(c), expected(c);
    const sextant_decode_plan_call call = c.call();
    beside.plan = made;
    EXPECT_OK(sextant_decode_plan_attend(made, c.cache.get(), &call, &results.out_array,
                                         &results.lse_array));
    attend_in_cpp(c, expected);
    EXPECT_EQ(results, expected);
  }
  sextant_pool_destroy(pool);
  EXPECT_EQ(beside.step, SEXTANT_BAD_ARGUMENT);
  EXPECT_EQ(beside.rows, SEXTANT_OK);
#ifndef NDEBUG
  EXPECT_EQ(beside.append, SEXTANT_BAD_ARGUMENT);
#endif
}

}  // namespace
}  // namespace sextant::testing
