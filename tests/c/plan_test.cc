// Plans: what they keep, renew and refuse, and the memory that they take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sextant/attention/attend.h"
#include "tests/base/allocations.h"
#include "tests/c/c_score.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;

// One shape with every operand, a rope, and two sweeps.
RandomOptions every_term() {
  return {.queries = 70,
          .keys = 90,
          .sweeps = 2,
          .rotated = true,
          .weight = true,
          .bias = true,
          .on_query = true,
          .on_key = true,
          .on_value = true,
          .key_bias = true,
          .clip = 5,
          .sink = true,
          .mask = true,
          .softcap = 3};
}

TEST(CPlan, AllocatesNothingFromTheSecondCallOn) {
  RandomScore<float> random(every_term());
  const CScore in_c(random.score);
  sextant_plan* plan = nullptr;
  ASSERT_EQ(sextant_plan_create(&in_c.attention, nullptr, &plan), SEXTANT_OK) << sextant_error();
  Outputs results(random.score);
  const sextant_array out = results.out_array();
  const auto step = [&] {
    EXPECT_EQ(sextant_plan_renew(plan, &in_c.attention), SEXTANT_OK) << sextant_error();
    EXPECT_EQ(sextant_plan_attend(plan, &in_c.attention, &out, nullptr, nullptr), SEXTANT_OK);
    for (const int ith : {1, 0})
      EXPECT_EQ(sextant_plan_attend_share(plan, &in_c.attention, &out, nullptr, ith, 2),
                SEXTANT_OK);
  };
  for (int n = 0; n < 3; ++n) step();
  const int64_t before = allocations();
  EXPECT_EQ(sextant_plan_attend(plan, &in_c.attention, &out, nullptr, nullptr), SEXTANT_OK);
  EXPECT_EQ(allocations() - before, 0) << "a call";
  EXPECT_EQ(sextant_plan_renew(plan, &in_c.attention), SEXTANT_OK);
  EXPECT_EQ(allocations() - before, 0) << "a renewal";
  step();
  EXPECT_EQ(allocations() - before, 0) << "a step";
  sextant_plan_destroy(plan);
}

// One query of one head over many keys is divided among threads, and its bits stay.
TEST(CPlan, FewQueriesAreDividedAmongThreads) {
  RandomScore<float> random({.batch = 1, .heads = 1, .key_heads = 1, .queries = 1, .keys = 9000});
  CScore in_c(random.score);
  Outputs expected(random.score);
  attend<float>(random.score, expected.views(), cpu_backend());
  for (const int threads : {0, 1, 2, 4, 7}) {
    in_c.attention.threads = threads;
    sextant_plan* plan = nullptr;
    ASSERT_EQ(sextant_plan_create(&in_c.attention, nullptr, &plan), SEXTANT_OK);
    Outputs got(random.score);
    const sextant_array out = got.out_array(), lse = got.lse_array();
    {
      std::vector<std::jthread> others;
      for (int ith = 0; ith < 4; ++ith)
        others.emplace_back([&, ith] {
          EXPECT_EQ(sextant_plan_attend_share(plan, &in_c.attention, &out, &lse, ith, 4),
                    SEXTANT_OK);
        });
    }
    EXPECT_EQ(got, expected) << threads;
    sextant_plan_destroy(plan);
  }
  in_c.attention.threads = -1;
  sextant_plan* plan = nullptr;
  EXPECT_EQ(sextant_plan_create(&in_c.attention, nullptr, &plan), SEXTANT_BAD_ARGUMENT);
  EXPECT_THAT(sextant_error(), HasSubstr("threads: expected 0 to 4096, but got -1"));
}

TEST(CPlan, KeepsCopiesOfLayoutAndRopes) {
  RandomScore<float> random({.queries = 20, .keys = 20, .rotated = true, .bias = true, .clip = 4});
  Outputs expected(random.score), got(random.score);
  attend<float>(random.score, expected.views(), cpu_backend());
  sextant_plan* plan = nullptr;
  {
    const CScore gone(random.score);
    ASSERT_EQ(sextant_plan_create(&gone.attention, nullptr, &plan), SEXTANT_OK);
  }
  CScore data(random.score);
  data.attention.layout = nullptr;
  const sextant_array out = got.out_array(), lse = got.lse_array();
  EXPECT_EQ(sextant_plan_attend(plan, &data.attention, &out, &lse, nullptr), SEXTANT_OK)
      << sextant_error();
  EXPECT_EQ(got, expected);
  sextant_plan_destroy(plan);
}

TEST(CPlan, RenewedServesTheNewShape) {
  sextant_plan* plan = nullptr;
  for (const int64_t rows : {30, 50, 12}) {
    RandomScore<float> random({.queries = rows, .keys = rows + 3, .rotated = true, .bias = true});
    const CScore in_c(random.score);
    if (!plan)
      ASSERT_EQ(sextant_plan_create(&in_c.attention, nullptr, &plan), SEXTANT_OK);
    else
      ASSERT_EQ(sextant_plan_renew(plan, &in_c.attention), SEXTANT_OK) << sextant_error();
    Outputs expected(random.score), got(random.score);
    attend<float>(random.score, expected.views(), cpu_backend());
    const sextant_array out = got.out_array(), lse = got.lse_array();
    EXPECT_EQ(sextant_plan_attend(plan, &in_c.attention, &out, &lse, nullptr), SEXTANT_OK);
    EXPECT_EQ(got, expected);
  }
  sextant_plan_destroy(plan);
}

void expect_refused(sextant_status status, const char* message) {
  EXPECT_EQ(status, SEXTANT_BAD_ARGUMENT);
  EXPECT_THAT(sextant_error(), HasSubstr(message));
}

TEST(CPlan, ServesNoCallAfterARenewalThatFails) {
  RandomScore<float> random({});
  CScore in_c(random.score);
  sextant_plan* plan = nullptr;
  ASSERT_EQ(sextant_plan_create(&in_c.attention, nullptr, &plan), SEXTANT_OK);
  in_c.frames[0].keys = 1000;
  expect_refused(sextant_plan_renew(plan, &in_c.attention), "layout.frames[0].keys: expected 0 to");
  Outputs results(random.score);
  const sextant_array out = results.out_array();
  expect_refused(sextant_plan_attend(plan, &in_c.attention, &out, nullptr, nullptr),
                 "plan: expected a sextant_plan_renew()");
  in_c.frames[0].keys = random.score.k.rows;
  EXPECT_EQ(sextant_plan_renew(plan, &in_c.attention), SEXTANT_OK);
  EXPECT_EQ(sextant_plan_attend(plan, &in_c.attention, &out, nullptr, nullptr), SEXTANT_OK);
  sextant_plan_destroy(plan);
}

TEST(CPlan, RefusesOtherShapesMapsAndBackends) {
  RandomScore<float> random({.bias = true, .clip = 3});
  CScore in_c(random.score);
  sextant_plan* plan = nullptr;
  for (const char* name : {"gpu", "", "cuda"}) {
    expect_refused(sextant_plan_create(&in_c.attention, name, &plan), "backend: expected one");
    EXPECT_EQ(plan, nullptr);
  }
  ASSERT_EQ(sextant_plan_create(&in_c.attention, "cpu", &plan), SEXTANT_OK);
  Outputs results(random.score);
  const sextant_array out = results.out_array();
  const auto attend = [&] {
    return sextant_plan_attend(plan, &in_c.attention, &out, nullptr, nullptr);
  };
  const int32_t* const rows = in_c.terms.bias.rows;
  in_c.terms.bias.rows = nullptr;
  expect_refused(attend(), "terms.bias.rows: expected the plan's map, but got NULL");
  in_c.terms.bias.rows = rows;
  in_c.attention.k.rows = in_c.attention.v.rows = 8;
  expect_refused(attend(), "k.rows: expected 9 (as planned), but got 8");
  sextant_plan_destroy(plan);
  sextant_plan_destroy(nullptr);
}

// A call says nothing of the layout, or the same as its plan.
TEST(CPlan, RefusesAnotherLayoutThanItsOwn) {
  RandomScore<float> random({.queries = 9, .keys = 9});
  SEXTANT_NEW(sextant_attention, call);
  call.q = c_array(random.score.q), call.k = c_array(random.score.k);
  call.v = c_array(random.score.v);
  call.window = 3;
  sextant_rope *rope = nullptr, *other = nullptr;
  for (sextant_rope** made : {&rope, &other})
    ASSERT_EQ(sextant_rope_create(8, 1e4, SEXTANT_HALF_SPLIT, 0, made), SEXTANT_OK);
  call.rope = rope;
  sextant_plan* plan = nullptr;
  ASSERT_EQ(sextant_plan_create(&call, nullptr, &plan), SEXTANT_OK) << sextant_error();
  Outputs results(random.score);
  const sextant_array out = results.out_array();
  const auto attend = [&](auto change) {
    sextant_attention changed = call;
    change(changed);
    return sextant_plan_attend(plan, &changed, &out, nullptr, nullptr);
  };
  EXPECT_EQ(attend([](auto&) {}), SEXTANT_OK) << sextant_error();
  EXPECT_EQ(attend([](auto& a) { a.window = 0, a.rope = nullptr; }), SEXTANT_OK);
  expect_refused(attend([](auto& a) { a.window = 4; }),
                 "window: expected 3 (as planned), but got 4");
  expect_refused(attend([](auto& a) { a.sees = SEXTANT_ALL_KEYS; }),
                 "sees: expected 0 (as planned)");
  expect_refused(attend([](auto& a) { a.left = 1; }), "left: expected 0 (as planned)");
  expect_refused(attend([&](auto& a) { a.rope = other; }), "rope: expected that of the plan");
  sextant_plan_destroy(plan);
  sextant_rope_destroy(rope);
  sextant_rope_destroy(other);
}

// A plan of more queries than keys says no positions.
TEST(CPlan, RefusesTablesWhereQueriesHaveNoPosition) {
  RandomScore<float> random({.queries = 12, .keys = 8});
  SEXTANT_NEW(sextant_terms, terms);
  SEXTANT_NEW(sextant_attention, call);
  call.q = c_array(random.score.q), call.k = c_array(random.score.k);
  call.v = c_array(random.score.v);
  call.sees = SEXTANT_ALL_KEYS;
  call.terms = &terms;
  sextant_plan* plan = nullptr;
  ASSERT_EQ(sextant_plan_create(&call, nullptr, &plan), SEXTANT_OK) << sextant_error();
  Outputs results(random.score);
  const sextant_array out = results.out_array();
  EXPECT_EQ(sextant_plan_attend(plan, &call, &out, nullptr, nullptr), SEXTANT_OK);
  const std::vector<float> table(19);
  terms.bias.table = sextant_contiguous(table.data(), SEXTANT_FLOAT32, 1, 1, 19, 1);
  expect_refused(sextant_plan_attend(plan, &call, &out, nullptr, nullptr),
                 "terms: expected no tables by distance");
  sextant_plan_destroy(plan);
}

// A call that finds the plan in use is refused, and the one that uses it is not disturbed.
TEST(CPlan, OneCallAtATime) {
  RandomScore<float> random({.queries = 64, .keys = 64});
  const CScore in_c(random.score);
  sextant_plan* plan = nullptr;
  ASSERT_EQ(sextant_plan_create(&in_c.attention, nullptr, &plan), SEXTANT_OK);
  Outputs results(random.score);
  const sextant_array out = results.out_array();
  struct Inside {
    std::function<void()> call;
  } inside = {[&] {
    expect_refused(sextant_plan_attend(plan, &in_c.attention, &out, nullptr, nullptr),
                   "plan: expected one call at a time");
  }};
  sextant_threads threads = {sizeof threads};
  threads.workers = 1;
  threads.user = &inside;
  threads.run = [](void* user, int64_t tasks, sextant_task task, void* state) {
    static_cast<Inside*>(user)->call();
    for (int64_t n = 0; n < tasks; ++n) task(state, n, 0);
  };
  sextant_pool* pool = nullptr;
  ASSERT_EQ(sextant_pool_create_from(&threads, &pool), SEXTANT_OK);
  EXPECT_EQ(sextant_plan_attend(plan, &in_c.attention, &out, nullptr, pool), SEXTANT_OK);
  sextant_pool_destroy(pool);
  sextant_plan_destroy(plan);
}

// All threads of a shared call get its error.
TEST(CPlan, SharedCallsFailTogether) {
  RandomScore<float> random({});
  CScore in_c(random.score);
  sextant_plan* plan = nullptr;
  ASSERT_EQ(sextant_plan_create(&in_c.attention, nullptr, &plan), SEXTANT_OK);
  in_c.attention.q.columns = 3;
  Outputs results(random.score);
  const sextant_array out = results.out_array();
  std::vector<std::jthread> threads;
  for (int ith = 0; ith < 3; ++ith)
    threads.emplace_back([&, ith] {
      expect_refused(sextant_plan_attend_share(plan, &in_c.attention, &out, nullptr, ith, 3),
                     "k.columns: expected 3");
    });
  threads.clear();
  expect_refused(sextant_plan_attend_share(plan, &in_c.attention, &out, nullptr, 3, 3),
                 "ith: expected 0 to 2, but got 3");
  sextant_plan_destroy(plan);
}

// A newer header's struct is longer.
TEST(CPlan, StructsSayTheirSize) {
  RandomScore<float> random({});
  CScore in_c(random.score);
  Outputs results(random.score);
  const sextant_array out = results.out_array();
  struct Newer {
    sextant_attention attention;
    int64_t added;
  } newer = {in_c.attention, 0};
  newer.attention.size = sizeof newer;
  EXPECT_EQ(sextant_attend(&newer.attention, &out, nullptr, nullptr), SEXTANT_OK)
      << sextant_error();
  newer.added = 1;
  expect_refused(sextant_attend(&newer.attention, &out, nullptr, nullptr),
                 "attention.size: expected zero in members that version");
  for (const size_t size : {size_t{0}, sizeof(sextant_attention) - 8, ~size_t{0}}) {
    in_c.attention.size = size;
    expect_refused(sextant_attend(&in_c.attention, &out, nullptr, nullptr), "attention.size");
  }
  in_c.attention.size = sizeof in_c.attention;
  in_c.terms.size = 0;
  expect_refused(sextant_attend(&in_c.attention, &out, nullptr, nullptr),
                 "terms.size: expected sizeof(sextant_terms)");
  in_c.terms.size = sizeof in_c.terms;
  in_c.layout.size = 1;
  expect_refused(sextant_attend(&in_c.attention, &out, nullptr, nullptr), "layout.size");
}

}  // namespace
}  // namespace sextant::testing
