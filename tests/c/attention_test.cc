// Calls of the C API have the bits of the same calls in C++.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/layouts.h"
#include "tests/c/c_score.h"

namespace sextant::testing {
namespace {

// The call in C++, and in C: once, by a plan, on threads of the caller, and shared by three of
// them.
void expect_same_bits(const Score<float>& score, const sextant_attention& call,
                      const std::string& backend_name) {
  SCOPED_TRACE(backend_name);
  Outputs expected(score), planned(score), shared(score);
  attend<float>(score, expected.views(), backend(backend_name));

  sextant_plan* plan = nullptr;
  ASSERT_EQ(sextant_plan_create(&call, backend_name.c_str(), &plan), SEXTANT_OK) << sextant_error();
  const sextant_array out = planned.out_array(), lse = planned.lse_array();
  EXPECT_EQ(sextant_plan_attend(plan, &call, &out, &lse, nullptr), SEXTANT_OK) << sextant_error();
  EXPECT_EQ(planned, expected);
  const sextant_array into = shared.out_array(), sums = shared.lse_array();
  {
    std::vector<std::jthread> threads;
    for (int ith = 0; ith < 3; ++ith)
      threads.emplace_back([&, ith] {
        EXPECT_EQ(sextant_plan_attend_share(plan, &call, &into, &sums, ith, 3), SEXTANT_OK);
      });
  }
  EXPECT_EQ(shared, expected);
  sextant_plan_destroy(plan);

  if (backend_name != "cpu") return;
  Outputs once(score);
  const sextant_array alone = once.out_array(), own = once.lse_array();
  EXPECT_EQ(sextant_attend(&call, &alone, &own, nullptr), SEXTANT_OK) << sextant_error();
  EXPECT_EQ(once, expected);
}

void expect_same_bits(const RandomOptions& options) {
  SCOPED_TRACE(to_string(options));
  RandomScore<float> random(options);
  const CScore in_c(random.score);
  for (const char* name : {"cpu", "reference", "cpu-bf16"})
    expect_same_bits(random.score, in_c.attention, name);
}

TEST(CAttention, EachOperandHasTheBitsOfCpp) {
  using Ranges = RandomOptions::KeyRanges;
  const std::vector<std::function<void(RandomOptions&)>> changes = {
      [](RandomOptions&) {},
      [](RandomOptions& o) { o.weight = true; },
      [](RandomOptions& o) { o.bias = true; },
      [](RandomOptions& o) { o.on_query = true; },
      [](RandomOptions& o) { o.on_key = true; },
      [](RandomOptions& o) { o.on_value = true; },
      [](RandomOptions& o) { o.query_bias = o.bias = true; },
      [](RandomOptions& o) { o.key_bias = true; },
      [](RandomOptions& o) { o.mask = true; },
      [](RandomOptions& o) { o.softcap = 2; },
      [](RandomOptions& o) { o.sink = true; },
      [](RandomOptions& o) { o.rotated = true; },
      [](RandomOptions& o) { o.rotated = true, o.axes = 2; },
      [](RandomOptions& o) { o.rotated = o.grows = true; },
      [](RandomOptions& o) { o.on_query = o.on_key = o.on_value = o.shared_tables = true; },
      [](RandomOptions& o) { o.bias = o.on_query = o.on_key = true, o.clip = 3; },
      [](RandomOptions& o) { o.key_ranges = Ranges::kWhole, o.on_query = true; },
      [](RandomOptions& o) { o.key_ranges = Ranges::kRagged, o.bias = true; },
      [](RandomOptions& o) { o.packed = 3, o.bias = true; },
      [](RandomOptions& o) { o.first_position = int64_t{1} << 40, o.rotated = true; },
      [](RandomOptions& o) { o.dtypes = {.q = DType::kBfloat16}, o.dtypes.k = DType::kFloat16; },
      [](RandomOptions& o) { o.odd_strides = o.bias = o.on_key = true; },
      [](RandomOptions& o) { o.query_sink = true; },
      [](RandomOptions& o) { o.on_query = true, o.table_query = 5; },
      [](RandomOptions& o) { o.position_axes = 3, o.axis_bias = true; },
      [](RandomOptions& o) {
        o.position_axes = 2, o.axis_width = 16, o.axis_bias = o.axis_on_query = true;
        o.key_ranges = Ranges::kWhole;
      },
      [](RandomOptions& o) { o.position_axes = 3, o.axis_on_query = true, o.table_query = 9; }};
  for (const auto& change : changes)
    for (const int sweeps : {1, 2}) {
      RandomOptions options = {.queries = 37, .keys = 53, .sweeps = sweeps};
      change(options);
      expect_same_bits(options);
    }
}

TEST(CAttention, SizesMayBeEqualOneOrZero) {
  const RandomOptions every = {.weight = true,
                               .bias = true,
                               .on_query = true,
                               .on_key = true,
                               .on_value = true,
                               .key_bias = true,
                               .position_axes = 2,
                               .axis_bias = true,
                               .axis_on_query = true,
                               .table_query = 3,
                               .query_sink = true};
  for (const int64_t n : {4, 1}) {
    RandomOptions options = every;
    options.batch = options.heads = options.key_heads = options.queries = options.keys = n;
    options.columns = options.value_columns = n;
    expect_same_bits(options);
  }
  RandomOptions options = {.queries = 3, .keys = 3};
  options.batch = 0;
  expect_same_bits(options);
}

// A score without a layout, with random rows.
struct Rows {
  RandomScore<float> random;
  sextant_attention call = {sizeof(sextant_attention)};

  Rows(int64_t queries, int64_t keys, int64_t batch = 2)
      : random({.batch = batch,
                .queries = queries,
                .keys = keys,
                .key_ranges = RandomOptions::KeyRanges::kWhole}) {
    call.q = c_array(random.score.q), call.k = c_array(random.score.k);
    call.v = c_array(random.score.v);
    call.scale = random.score.scale;
  }
  // Expects the bits of a plan, with a rope and a bias by distance.
  void expect(const std::function<OwnedPlan(std::optional<Rotation>)>& make) {
    const Rotation rope = rotation(rotary({.dim = 8}));
    const OwnedPlan layout = make(rope);
    const Diagonals& d = layout.diagonals();
    const auto table = by_distance(d, 4, [](int64_t h, int64_t t) {
      return 0.1 * static_cast<double>(h + 1) * static_cast<double>(t % 5);
    });
    Score<float> score = {random.score, layout.plan()};
    score.bias = contiguous(table.data(), {.heads = 4, .rows = d.count});
    sextant_rope in_c = {std::make_shared<const Rotation>(rope)};
    sextant_terms terms = {sizeof terms};
    terms.bias.table = c_array(score.bias);
    call.rope = &in_c;
    call.terms = &terms;
    int64_t farthest = -1, count = -1;
    EXPECT_EQ(sextant_attention_diagonals(&call, &farthest, &count), SEXTANT_OK) << sextant_error();
    EXPECT_EQ(count, d.count);
    EXPECT_EQ(farthest, d.farthest);
    for (const char* name : {"cpu", "reference"}) expect_same_bits(score, call, name);
  }
};

TEST(CAttention, LayoutsAreThoseOfCpp) {
  const SequenceRows rows = {.queries = 20, .keys = 31};
  Rows(20, 31).expect([&](auto rope) { return causal(rows, rope); });
  Rows windowed_rows(20, 31);
  windowed_rows.call.window = 7;
  windowed_rows.expect([&](auto rope) { return windowed(rows, 7, rope); });
  Rows all(20, 31);
  all.call.sees = SEXTANT_ALL_KEYS;
  all.expect([&](auto rope) { return bidirectional(rows, rope); });
  const int64_t first = 3;
  Rows more(31, 20);
  more.call.first_query = &first;
  more.expect(
      [&](auto rope) { return causal({.queries = 31, .keys = 20, .first_query = 3}, rope); });
}

TEST(CAttention, AContextIsLimitedOnBothSides) {
  for (const auto& [left, right] : {std::pair<int64_t, int64_t>{0, 0}, {5, 2}, {100, 0}, {0, 3}}) {
    Rows rows(31, 31);
    rows.call.sees = SEXTANT_CONTEXT;
    rows.call.left = left, rows.call.right = right;
    rows.expect([&, left = left, right = right](auto rope) {
      return within({{.queries = 31, .keys = 31}}, {.left = left, .right = right}, rope);
    });
  }
}

TEST(CAttention, SequencesMayBePackedInEitherDirection) {
  const std::vector<int64_t> lengths = {7, 0, 13, 1, 10};
  Rows causal_rows(31, 31);
  causal_rows.call.lengths = lengths.data(), causal_rows.call.sequences = 5;
  causal_rows.expect([&](auto rope) { return packed(lengths, rope); });
  Rows both(31, 31);
  both.call.lengths = lengths.data(), both.call.sequences = 5;
  both.call.sees = SEXTANT_ALL_KEYS;
  both.expect([&](auto rope) {
    std::vector<Frame> frames;
    int64_t row = 0;
    for (const int64_t n : lengths) {
      frames.push_back({.query_row = row, .queries = n, .key_row = row, .keys = n});
      row += n;
    }
    return within(frames, {}, rope);
  });
}

// Rows behind a length have no effect, and their results are 0.
TEST(CAttention, PaddedBatchesHaveTheResultsOfTheirSequences) {
  const std::vector<int64_t> lengths = {31, 17, 0};
  Rows rows(31, 31, 3);
  rows.call.sees = SEXTANT_CONTEXT;
  rows.call.left = 9, rows.call.right = 4;
  rows.call.query_lengths = rows.call.key_lengths = lengths.data();
  rows.expect([&](auto rope) {
    std::vector<Frame> frames;
    for (int64_t b = 0; b < 3; ++b)
      frames.push_back({.batch = b, .queries = lengths[b], .keys = lengths[b]});
    return within(frames, {.left = 9, .right = 4}, rope);
  });
  Outputs results(rows.random.score);
  const sextant_array out = results.out_array(), lse = results.lse_array();
  rows.call.rope = nullptr, rows.call.terms = nullptr;
  ASSERT_EQ(sextant_attend(&rows.call, &out, &lse, nullptr), SEXTANT_OK) << sextant_error();
  EXPECT_EQ(results.out.back(), 0);
  EXPECT_EQ(results.lse.back(), -std::numeric_limits<float>::infinity());
}

// Without anything that depends on positions, queries need none.
TEST(CAttention, CrossAttentionMayHaveMoreQueriesThanKeys) {
  Rows rows(31, 20);
  rows.call.sees = SEXTANT_ALL_KEYS;
  const OwnedPlan layout = bidirectional({.queries = 31, .keys = 20, .first_query = 0});
  expect_same_bits({rows.random.score, layout.plan()}, rows.call, "cpu");
}

// ReRoPE: keys beyond a window are rotated as if all were `window` away.
TEST(CAttention, TwoSweepsAreReRope) {
  constexpr int64_t kRows = 40, kWindow = 9;
  Rows rows(kRows, kRows);
  const Rotation rope = rotation(rotary({.dim = 8}));
  const std::vector<int64_t> far_queries(kRows, kWindow), far_keys(kRows, 0);
  std::vector<KeyRange> near_ranges, far_ranges;
  for (int64_t i = 0; i < kRows; ++i) {
    near_ranges.push_back({std::max<int64_t>(0, i - kWindow + 1), i + 1});
    far_ranges.push_back({0, std::max<int64_t>(0, i - kWindow + 1)});
  }
  const Plan plan = {
      .frames = {{.queries = kRows, .keys = kRows}},
      .sweeps = {{.query = {.rotation = &rope},
                  .key = {.rotation = &rope},
                  .key_ranges = near_ranges.data()},
                 {.query = {.rotation = &rope, .rotary_positions = far_queries.data()},
                  .key = {.rotation = &rope, .rotary_positions = far_keys.data()},
                  .key_ranges = far_ranges.data()}}};
  const Score<float> score = {rows.random.score, plan};
  const CScore in_c(score);
  for (const char* name : {"cpu", "reference"}) expect_same_bits(score, in_c.attention, name);
}

// Block tables of an engine: pages in any order, ragged queries in one call.
TEST(CAttention, PagesOfTheCallerHaveTheBitsOfRows) {
  constexpr int64_t kPageRows = 16, kRows = 40, kEach = 3;
  for (const int64_t window : {0, 9}) {
    Rows rows(5, kRows, 1);
    const HostAnyView<const float> k(rows.random.score.k), v(rows.random.score.v);
    const std::vector<int64_t> table = {4, 0, 2};
    std::vector<float> key_pages(5 * 2 * kPageRows * 8), value_pages(5 * 2 * kPageRows * 5);
    const HostView<float> keys(contiguous(key_pages, {5, 2, kPageRows, 8}));
    const HostView<float> values(contiguous(value_pages, {5, 2, kPageRows, 5}));
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t j = 0; j < kRows; ++j) {
        const int64_t page = table[static_cast<size_t>(j / kPageRows)];
        for (int64_t c = 0; c < 8; ++c) keys(page, h, j % kPageRows, c) = k(0, h, j, c);
        for (int64_t c = 0; c < 5; ++c) values(page, h, j % kPageRows, c) = v(0, h, j, c);
      }
    const SequenceRows last = {.queries = 5, .keys = kRows};
    const OwnedPlan layout = window > 0 ? windowed(last, window) : causal(last);
    const Score<float> score = {rows.random.score, layout.plan()};
    Outputs expected(score);
    attend<float>(score, expected.views(), cpu_backend());
    Score<float> paged = score;
    paged.k = View<const float>(keys), paged.v = View<const float>(values);
    paged.pages = {.at = table.data(), .batch_stride = kEach, .rows = kRows};
    const CScore in_c(paged);
    Outputs got(score);
    const sextant_array out = got.out_array(), lse = got.lse_array();
    ASSERT_EQ(sextant_attend(&in_c.attention, &out, &lse, nullptr), SEXTANT_OK) << sextant_error();
    EXPECT_EQ(got, expected);
  }
}

TEST(CAttention, RopesOfPairsAreThoseOfSpectra) {
  const Spectrum xpos = with_xpos(rotary({.dim = 8}), 0.4, 512);
  std::vector<sextant_pair> pairs;
  for (const Spectrum::Pair& p : xpos.pairs)
    pairs.push_back({p.first, p.second, static_cast<double>(p.frequency), p.growth, p.axis});
  sextant_rope* rope = nullptr;
  ASSERT_EQ(sextant_rope_create_from_pairs(pairs.data(), std::ssize(pairs), 1.5, &rope), SEXTANT_OK)
      << sextant_error();
  Spectrum rounded = xpos;
  rounded.gain = 1.5;
  for (Spectrum::Pair& p : rounded.pairs) p.frequency = {static_cast<double>(p.frequency), 0};
  EXPECT_TRUE(same_rotation(*rope->rotation, rotation(rounded)));
  sextant_rope_destroy(rope);
}

// A pool of the caller's: tasks in reverse order, on two threads of its own.
TEST(CAttention, ThreadsOfTheCallerGiveTheSameBits) {
  RandomScore<float> random({.queries = 200, .keys = 200, .bias = true});
  const CScore in_c(random.score);
  sextant_threads threads = {sizeof threads};
  threads.workers = 2;
  int jobs = 0;
  threads.user = &jobs;
  threads.run = [](void* user, int64_t tasks, sextant_task task, void* state) {
    ++*static_cast<int*>(user);
    std::jthread other([=] {
      for (int64_t n = tasks - 1; n >= 0; n -= 2) task(state, n, 1);
    });
    for (int64_t n = tasks - 2; n >= 0; n -= 2) task(state, n, 0);
  };
  sextant_pool* pool = nullptr;
  ASSERT_EQ(sextant_pool_create_from(&threads, &pool), SEXTANT_OK) << sextant_error();
  Outputs expected(random.score), got(random.score);
  attend<float>(random.score, expected.views(), cpu_backend());
  const sextant_array out = got.out_array(), lse = got.lse_array();
  EXPECT_EQ(sextant_attend(&in_c.attention, &out, &lse, pool), SEXTANT_OK) << sextant_error();
  EXPECT_EQ(got, expected);
  EXPECT_GT(jobs, 0);
  sextant_pool_destroy(pool);
}

}  // namespace
}  // namespace sextant::testing
