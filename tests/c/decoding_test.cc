// Decoding in C has the bits of C++.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "tests/base/allocations.h"
#include "tests/c/decoded.h"

namespace sextant::testing {
namespace {

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
  for (const bool vectors : {false, true}) {
    const Decoded problem = {
        .rows = {300, 80}, .window = 100, .alibi = true, .on_key = vectors, .softcap = 3};
    InC c(problem);
    const Own<sextant_decode_plan> plan = c.plan(/*threads=*/2);
    DecodedResults results(c);
    const sextant_decode_plan_call call = c.call();
    std::vector<float> row(kKeyHeads * kKeyColumns, 0.5F);
    const sextant_array k =
        sextant_contiguous(row.data(), SEXTANT_FLOAT32, 1, kKeyHeads, 1, kKeyColumns);
    const sextant_array v =
        sextant_contiguous(row.data(), SEXTANT_FLOAT32, 1, kKeyHeads, 1, kValues);
    for (const int64_t sequence : c.sequences)
      EXPECT_OK(sextant_cache_reserve(c.cache.get(), sequence, 720));
    const auto step = [&] {
      for (const int64_t sequence : c.sequences)
        EXPECT_OK(sextant_cache_append(c.cache.get(), sequence, &k, &v));
      EXPECT_OK(sextant_decode_plan_step(plan.get(), c.cache.get(), nullptr));
      EXPECT_OK(sextant_decode_plan_attend(plan.get(), c.cache.get(), &call, &results.out_array,
                                           nullptr));
      for (const int ith : {1, 0})
        EXPECT_OK(sextant_decode_plan_attend_share(plan.get(), c.cache.get(), &call,
                                                   &results.out_array, nullptr, ith, 2));
    };
    for (int n = 0; n < 2; ++n) step();
    const int64_t before = allocations();
    for (int n = 0; n < 300; ++n) step();
    EXPECT_EQ(allocations() - before, 0);
  }
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
  decode([&](auto& d) { d.queries = too_many.data(); }, "queries: expected 0 to 2, but got 3");
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
      "decoding: terms.bias.table.rows: expected 720");
  expect_refusal(sextant_decode_plan_step(plan.get(), c.cache.get(), too_many.data()),
                 "queries: expected 0 to 2, but got 3");
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
