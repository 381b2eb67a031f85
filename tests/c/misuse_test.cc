// Misuses of the C API: each is refused in words that name the member of a C struct, and nothing is
// written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sextant/sextant.h"

namespace sextant {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kHeads = 4, kKeyHeads = 2, kRows = 9, kColumns = 8;

// A call that is right, with memory around q, k, v and out.
struct Call {
  std::vector<float> q = std::vector<float>(1 << 12, 0.5F), k = q, v = q, table = q;
  std::vector<float> out = std::vector<float>(1 << 12, 77);
  std::vector<double> key_bias = std::vector<double>(1 << 10);
  std::vector<uint8_t> mask = std::vector<uint8_t>(1 << 12, 1);
  std::vector<int32_t> rows = std::vector<int32_t>(64);
  std::vector<sextant_range> ranges = std::vector<sextant_range>(kRows, {0, kRows});
  int64_t lengths[2] = {4, 5}, first = 0, pages[1] = {0};
  sextant_frame frame = {-1, 0, kRows, 0, 0, kRows, 0};
  sextant_sweep sweep = {};
  sextant_attention a = {sizeof a};
  sextant_terms terms = {sizeof terms};
  sextant_layout layout = {sizeof layout};
  sextant_array to = {}, lse = {};
  bool with_lse = false;

  Call() {
    a.q = array(q, kHeads, kRows, kColumns), a.k = array(k, kKeyHeads, kRows, kColumns);
    a.v = array(v, kKeyHeads, kRows, kColumns), to = array(out, kHeads, kRows, kColumns);
    lse = sextant_contiguous(out.data() + 2048, SEXTANT_FLOAT32, 1, kHeads, kRows, 1);
    a.terms = &terms;
    sweep.ranges = ranges.data();
    layout.frames = &frame, layout.frame_count = 1;
    layout.sweeps = &sweep, layout.sweep_count = 1;
    layout.farthest = kRows - 1, layout.diagonals = 2 * kRows - 1;
  }
  static sextant_array array(std::vector<float>& x, int64_t heads, int64_t rows, int64_t columns) {
    return sextant_contiguous(x.data(), SEXTANT_FLOAT32, 1, heads, rows, columns);
  }
  sextant_array bias(int64_t heads, int64_t count) { return array(table, heads, count, 1); }
  sextant_status attend() { return sextant_attend(&a, &to, with_lse ? &lse : nullptr, nullptr); }
};

struct Misuse {
  const char* message;  // a part of it
  std::function<void(Call&)> change;
};

void expect_refused(const std::vector<Misuse>& misuses) {
  for (const Misuse& misuse : misuses) {
    SCOPED_TRACE(misuse.message);
    Call call;
    misuse.change(call);
    EXPECT_EQ(call.attend(), SEXTANT_BAD_ARGUMENT);
    EXPECT_THAT(sextant_error(), HasSubstr(misuse.message));
    EXPECT_THAT(call.out, Each(77)) << "nothing is written";
  }
}

constexpr int64_t kWild = std::numeric_limits<int64_t>::max() / 2;

TEST(CMisuse, TheCallItselfIsRight) {
  Call call;
  EXPECT_EQ(call.attend(), SEXTANT_OK) << sextant_error();
  EXPECT_EQ(call.out[0], 0.5F);
}

// An axis with one position for all rows, and a table for it.
void set_axis(Call& c, std::vector<int64_t>& positions, sextant_axis& axis) {
  positions.assign(kRows, 0);
  axis = {positions.data(), positions.data(), 0, 0, 0, 1, c.rows.data(), c.rows.data()};
  c.terms.axes = &axis, c.terms.axis_count = 1;
  c.terms.axis_bias = c.bias(1, 2);
}

TEST(CMisuse, OfAxes) {
  std::vector<int64_t> positions;
  sextant_axis axis;
  const auto with_axis = [&](auto change) {
    return [&, change](Call& c) {
      set_axis(c, positions, axis);
      change(c);
    };
  };
  expect_refused({
      {"terms.axes: expected as many as axis_count says, 2",
       [](Call& c) { c.terms.axis_count = 2; }},
      {"terms.axes: expected as many as axis_count says, -1",
       [](Call& c) { c.terms.axis_count = -1; }},
      {"terms.axis_count: expected at most 8, but got 9",
       with_axis([&](Call& c) { c.terms.axis_count = 9; })},
      {"terms.axes[0].distances.farthest: expected",
       with_axis([&](Call&) { axis.farthest = std::numeric_limits<int64_t>::min(); })},
      {"terms.axes[0].query_positions: expected data, but got NULL",
       with_axis([&](Call&) { axis.query_positions = nullptr; })},
      {"terms.axes[0].key_positions: expected a batch stride of 0, or at least 9",
       with_axis([&](Call&) { axis.key_batch_stride = 3; })},
      {"terms.axes[0].distances: expected 0 to 16777216, but got -1",
       with_axis([&](Call&) { axis.distances = -1; })},
      {"terms.axes[0].distances: expected each distance of a query and a key of a frame, 0 to 3",
       with_axis([&](Call&) {
         positions.resize(2 * kRows);
         positions[4] = 3;
         axis.query_positions = positions.data(), axis.key_positions = positions.data() + kRows;
       })},
      {"rows of axis_bias: expected -1 to 1, but got 2",
       with_axis([&](Call& c) { c.rows[0] = 2; })},
      {"terms.axis_bias.columns: expected 1 to 1, but got 8",
       with_axis([&](Call& c) { c.terms.axis_bias = Call::array(c.table, 1, 2, kColumns); })},
      {"terms.axis_bias: expected an axis with rows of it, but got none",
       [](Call& c) { c.terms.axis_bias = c.bias(1, 2); }},
      {"terms.axis_on_query.columns: expected 0 to 8, but got 9",
       with_axis([&](Call& c) { c.terms.axis_on_query = Call::array(c.table, 1, 2, 9); })},
      {"terms.table_query: expected a table that it meets",
       [](Call& c) { c.terms.table_query = Call::array(c.table, kHeads, kRows, 3); }},
      {"terms.table_query.rows: expected 9", with_axis([&](Call& c) {
         c.terms.axis_on_query = Call::array(c.table, 1, 2, 3);
         c.terms.table_query = Call::array(c.table, kHeads, kRows - 1, 3);
       })},
      {"terms.query_sink: expected none beside a sink",
       [](Call& c) {
         c.terms.query_sink = Call::array(c.table, kHeads, kRows, 1);
         c.terms.sink = c.table.data();
       }},
  });
}

TEST(CMisuse, OfArrays) {
  expect_refused({
      {"q: expected an array, but got an absent one", [](Call& c) { c.a.q = {}; }},
      {"k: expected data, but got NULL", [](Call& c) { c.a.k.data = nullptr; }},
      {"v: expected sizes of at least 0, but got -2", [](Call& c) { c.a.v.heads = -2; }},
      {"q: expected at most 2^60 elements", [](Call& c) { c.a.q.rows = c.a.q.heads = 1LL << 40; }},
      {"q.dtype: expected SEXTANT_FLOAT32", [](Call& c) { c.a.q.dtype = sextant_dtype(9); }},
      {"k.dtype: expected SEXTANT_FLOAT32", [](Call& c) { c.a.k.dtype = SEXTANT_INT8; }},
      {"v.dtype: expected SEXTANT_FLOAT32", [](Call& c) { c.a.v.dtype = SEXTANT_FLOAT64; }},
      {"q.row_stride: expected elements within 2^62 bytes",
       [](Call& c) { c.a.q.row_stride = kWild; }},
      {"k.head_stride: expected elements within 2^62 bytes",
       [](Call& c) { c.a.k.head_stride = std::numeric_limits<int64_t>::min(); }},
      {"v: expected strides (sextant_contiguous() fills them in), but all are 0",
       [](Call& c) {
         c.a.v.batch_stride = c.a.v.head_stride = c.a.v.row_stride = c.a.v.column_stride = 0;
       }},
      {"q.column_stride: expected a stride other than 0", [](Call& c) { c.a.q.column_stride = 0; }},
      {"out.row_stride: expected at least 8, for elements must not overlap",
       [](Call& c) { c.to.row_stride = 4; }},
      {"out.head_stride: expected at least 72",
       [](Call& c) { c.to.head_stride = kRows * kColumns - 1; }},
      {"out.head_stride: expected a stride other than 0", [](Call& c) { c.to.head_stride = 0; }},
      {"out: expected data, but got NULL", [](Call& c) { c.to.data = nullptr; }},
      {"k.columns: expected 8 (as q), but got 7", [](Call& c) { c.a.k.columns = 7; }},
      {"v.rows: expected 9 (as k), but got 8", [](Call& c) { c.a.v.rows = 8; }},
      {"q.heads: expected a multiple of the 3 key heads",
       [](Call& c) { c.a.k.heads = c.a.v.heads = 3; }},
      {"out.heads: expected 4", [](Call& c) { c.to.heads = 3; }},
      {"out: expected memory of its own, but it shares some with k",
       [](Call& c) { c.a.k.data = c.out.data() + 100; }},
      {"out: expected memory of its own, but it shares some with v",
       [](Call& c) { c.a.v.data = c.out.data(); }},
      {"out: expected memory of its own, but it shares some with q, and is not q itself",
       [](Call& c) { c.a.q.data = c.out.data() + 1; }},
      {"lse: expected memory of its own, but it shares some with out",
       [](Call& c) { c.with_lse = true, c.lse.data = c.out.data() + 5; }},
      {"lse.rows: expected 9", [](Call& c) { c.with_lse = true, c.lse.rows = 8; }},
      {"lse.dtype: expected SEXTANT_FLOAT32",
       [](Call& c) { c.with_lse = true, c.lse.dtype = SEXTANT_FLOAT16; }},
      {"scale: expected a finite number",
       [](Call& c) { c.a.scale = std::numeric_limits<double>::infinity(); }},
  });
}

TEST(CMisuse, OfLayouts) {
  expect_refused({
      {"sees: expected 0 to 2, but got 7", [](Call& c) { c.a.sees = sextant_visibility(7); }},
      {"window: expected at least 0, but got -1", [](Call& c) { c.a.window = -1; }},
      {"window: expected 0 without SEXTANT_CAUSAL",
       [](Call& c) { c.a.window = 3, c.a.sees = SEXTANT_ALL_KEYS; }},
      {"left: expected 0 without SEXTANT_CONTEXT", [](Call& c) { c.a.left = 3; }},
      {"right: expected 0 to", [](Call& c) { c.a.right = -3, c.a.sees = SEXTANT_CONTEXT; }},
      {"q.rows: expected at most the 4 rows of k, as the queries are the last rows",
       [](Call& c) { c.a.k.rows = c.a.v.rows = 4; }},
      {"first_query: expected", [](Call& c) { c.first = kWild, c.a.first_query = &c.first; }},
      {"lengths: expected 2 lengths, as sequences says, but got NULL",
       [](Call& c) { c.a.sequences = 2; }},
      {"sequences: expected at least 0", [](Call& c) { c.a.sequences = -2; }},
      {"lengths: expected a sum of 9 queries and 9 keys, but got 4",
       [](Call& c) { c.a.lengths = c.lengths, c.a.sequences = 1; }},
      {"lengths: expected 0 to 2^60, but got -4",
       [](Call& c) { c.lengths[0] = -4, c.a.lengths = c.lengths, c.a.sequences = 2; }},
      {"lengths: expected NULL beside first_query",
       [](Call& c) { c.a.lengths = c.lengths, c.a.sequences = 2, c.a.key_lengths = c.lengths; }},
      {"key_lengths[0]: expected 0 to 9, but got 10",
       [](Call& c) { c.lengths[0] = 10, c.a.key_lengths = c.lengths; }},
      {"layout: expected zero in the members from first_query to rope",
       [](Call& c) { c.a.layout = &c.layout, c.a.window = 3; }},
      {"layout.frames: expected as many as the count says",
       [](Call& c) { c.a.layout = &c.layout, c.layout.frames = nullptr; }},
      {"layout.sweeps: expected as many as the count says",
       [](Call& c) { c.a.layout = &c.layout, c.layout.sweep_count = -1; }},
      {"layout.sweeps[0].ranges: expected data",
       [](Call& c) { c.a.layout = &c.layout, c.sweep.ranges = nullptr; }},
      {"layout.sweeps[0].batch_stride: expected 0, or at least",
       [](Call& c) { c.a.layout = &c.layout, c.sweep.batch_stride = 2; }},
      {"layout.frames[0].keys: expected 0 to 9, but got 10",
       [](Call& c) { c.a.layout = &c.layout, c.frame.keys = 10; }},
      {"layout.diagonals: expected every distance seen, -8 to 0 at query row 0",
       [](Call& c) {
         c.a.layout = &c.layout, c.layout.diagonals = kRows;
         c.terms.bias.table = c.bias(1, kRows);
       }},
      {"layout.pages: expected page numbers",
       [](Call& c) { c.a.layout = &c.layout, c.layout.keys = 16; }},
      {"k.rows: expected a multiple of 16",
       [](Call& c) { c.a.layout = &c.layout, c.layout.pages = c.pages, c.layout.keys = 9; }},
      {"layout.pages[0, 0]: expected 0 to 0, but got 3",
       [](Call& c) {
         c.a.layout = &c.layout, c.layout.pages = c.pages, c.layout.keys = 9, c.pages[0] = 3;
         c.a.k.rows = c.a.v.rows = 16;
       }},
  });
}

TEST(CMisuse, OfTerms) {
  expect_refused({
      {"terms.bias.table: expected data, or all sizes 0 (absent), but got NULL",
       [](Call& c) { c.terms.bias.table = c.bias(1, 9), c.terms.bias.table.data = nullptr; }},
      {"terms.weight.table: expected data, since there are rows, but got NULL",
       [](Call& c) { c.terms.weight.rows = c.rows.data(); }},
      {"terms.bias.table.rows: expected at least 9 (one row for each diagonal, there is no map)",
       [](Call& c) { c.terms.bias.table = c.bias(1, 8); }},
      {"terms.bias.table.heads: expected 1 or 4, but got 2",
       [](Call& c) { c.terms.bias.table = c.bias(2, 9); }},
      {"terms.on_query.table.columns: expected 0 to 8, but got 9",
       [](Call& c) { c.terms.on_query.table = Call::array(c.table, 1, 9, 9); }},
      {"terms.on_value.table.columns: expected 8 to 8, but got 7",
       [](Call& c) { c.terms.on_value.table = Call::array(c.table, 1, 9, 7); }},
      {"terms.on_key.table.dtype: expected SEXTANT_FLOAT32",
       [](Call& c) {
         c.terms.on_key.table = Call::array(c.table, 1, 9, 8);
         c.terms.on_key.table.dtype = SEXTANT_BFLOAT16;
       }},
      {"terms.bias.rows: expected rows 0 to 3, but got 4",
       [](Call& c) {
         c.terms.bias = {.table = c.bias(1, 4), .rows = c.rows.data()};
         c.rows[3] = 4;
       }},
      {"terms.key_bias.dtype: expected SEXTANT_FLOAT64",
       [](Call& c) { c.terms.key_bias = Call::array(c.table, kHeads, kRows, 1); }},
      {"terms.key_bias.rows: expected 9",
       [](Call& c) {
         c.terms.key_bias =
             sextant_contiguous(c.key_bias.data(), SEXTANT_FLOAT64, 1, kHeads, kRows - 1, 1);
       }},
      {"terms.query_bias.columns: expected at least 9",
       [](Call& c) { c.terms.query_bias = Call::array(c.table, kHeads, kRows, 8); }},
      {"terms.softcap: expected a finite number above 0", [](Call& c) { c.terms.softcap = -1; }},
      {"terms.size: expected sizeof(sextant_terms)", [](Call& c) { c.terms.size = 0; }},
      {"attention.size: expected sizeof(sextant_attention)", [](Call& c) { c.a.size = 8; }},
  });
}

TEST(CMisuse, OfRopesAndPools) {
  const auto refused = [](sextant_status status, const char* message) {
    EXPECT_EQ(status, SEXTANT_BAD_ARGUMENT);
    EXPECT_THAT(sextant_error(), HasSubstr(message));
  };
  sextant_rope* rope = nullptr;
  sextant_pool* pool = nullptr;
  refused(sextant_rope_create(7, 10000, SEXTANT_HALF_SPLIT, 0, &rope),
          "rope: columns: expected an even number, but got 7");
  refused(sextant_rope_create(-2, 10000, SEXTANT_HALF_SPLIT, 0, &rope),
          "rope: columns: expected 0");
  refused(sextant_rope_create(8, -1, SEXTANT_HALF_SPLIT, 0, &rope), "base");
  refused(sextant_rope_create(8, 1e4, sextant_pairing(5), 0, &rope), "rope: pairing");
  refused(sextant_rope_create(8, 1e4, SEXTANT_HALF_SPLIT, 0, nullptr), "rope: expected a pointer");
  const sextant_pair pair = {0, 1, 1, std::numeric_limits<double>::quiet_NaN(), 0};
  refused(sextant_rope_create_from_pairs(&pair, 1, 1, &rope), "rope: pairs: growth: expected");
  refused(sextant_rope_create_from_pairs(&pair, -1, 1, &rope), "rope: count");
  refused(sextant_rope_create_from_pairs(nullptr, 1, 1, &rope), "rope: pairs: expected a pointer");
  EXPECT_EQ(rope, nullptr);
  for (const int threads : {0, -1, 5000})
    refused(sextant_pool_create(threads, &pool), "threads: expected 1 to 4096");
  sextant_threads threads = {sizeof threads};
  threads.workers = 1;
  refused(sextant_pool_create_from(&threads, &pool), "threads: run: expected a function");
  threads.run = [](void*, int64_t, sextant_task, void*) {};  // runs no task
  threads.workers = 0;
  refused(sextant_pool_create_from(&threads, &pool), "threads: workers: expected 1 to 4096");
  threads.workers = 2;
  ASSERT_EQ(sextant_pool_create_from(&threads, &pool), SEXTANT_OK);
  std::vector<float> x(4 * 512 * 8, 0.5F), out = x;  // work for two threads
  SEXTANT_NEW(sextant_attention, call);
  call.q = call.k = call.v = Call::array(x, 4, 512, 8);
  const sextant_array to = Call::array(out, 4, 512, 8);
  refused(sextant_attend(&call, &to, nullptr, pool), "threads: run: expected");
  sextant_pool_destroy(pool);
  threads.run = [](void*, int64_t tasks, sextant_task task, void* state) {
    for (int64_t n = 0; n < tasks; ++n) task(state, n, 2);
  };
  ASSERT_EQ(sextant_pool_create_from(&threads, &pool), SEXTANT_OK);
  refused(sextant_attend(&call, &to, nullptr, pool), "a worker below 2");
  sextant_pool_destroy(pool);

  ASSERT_EQ(sextant_rope_create(16, 1e4, SEXTANT_HALF_SPLIT, 0, &rope), SEXTANT_OK);
  Call wide;
  wide.a.rope = rope;
  refused(wide.attend(),
          "attention: rope: expected pairs of columns below 8 (of q), but got column");
  sextant_rope_destroy(rope);
}

// Calls that look like misuses and are right.
TEST(CMisuse, OutMayBeQItselfAndLieBetweenRowsOfKeys) {
  Call plain, in_place;
  ASSERT_EQ(plain.attend(), SEXTANT_OK);
  in_place.to = in_place.a.q;
  EXPECT_EQ(in_place.attend(), SEXTANT_OK) << sextant_error();
  EXPECT_TRUE(std::memcmp(in_place.q.data(), plain.out.data(),
                          sizeof(float) * kHeads * kRows * kColumns) == 0);

  // [rows, (q, k, v, out), heads, columns] in one array
  constexpr int64_t kAll = 2 * kHeads + 2 * kKeyHeads;
  std::vector<float> all(static_cast<size_t>(kRows * kAll * kColumns), 0.5F);
  const auto slice = [&](int64_t first, int64_t heads) {
    return sextant_array{all.data() + first * kColumns,
                         1,
                         heads,
                         kRows,
                         kColumns,
                         0,
                         kColumns,
                         kAll * kColumns,
                         1,
                         SEXTANT_FLOAT32};
  };
  Call packed;
  packed.a.q = slice(0, kHeads), packed.a.k = slice(kHeads, kKeyHeads);
  packed.a.v = slice(kHeads + kKeyHeads, kKeyHeads);
  packed.to = slice(kHeads + 2 * kKeyHeads, kHeads);
  EXPECT_EQ(packed.attend(), SEXTANT_OK) << sextant_error();
  packed.to = slice(kHeads - 1, kHeads);
  EXPECT_EQ(packed.attend(), SEXTANT_BAD_ARGUMENT);
}

#ifndef NDEBUG
TEST(CMisuse, OfAnObjectThatIsDestroyedOrOfAnotherTypeIsRefusedWithAssertions) {
  sextant_rope *rope = nullptr, *kept = nullptr;
  ASSERT_EQ(sextant_rope_create(8, 10000, SEXTANT_HALF_SPLIT, 0, &rope), SEXTANT_OK);
  ASSERT_EQ(sextant_rope_create(8, 10000, SEXTANT_HALF_SPLIT, 0, &kept), SEXTANT_OK);
  sextant_pool* pool = nullptr;
  ASSERT_EQ(sextant_pool_create(1, &pool), SEXTANT_OK);
  const auto expect_refused = [&](sextant_rope* of, sextant_pool* with) {
    Call call;
    call.a.rope = of;
    EXPECT_EQ(sextant_attend(&call.a, &call.to, nullptr, with), SEXTANT_BAD_ARGUMENT);
    EXPECT_THAT(sextant_error(), HasSubstr("expected an object of this type"));
  };
  sextant_rope_destroy(rope);
  expect_refused(rope, nullptr);
  expect_refused(reinterpret_cast<sextant_rope*>(pool), nullptr);
  expect_refused(kept, reinterpret_cast<sextant_pool*>(kept));
  sextant_pool_destroy(reinterpret_cast<sextant_pool*>(kept));  // does nothing
  EXPECT_THAT(sextant_error(), HasSubstr("pool: expected an object of this type"));
  sextant_rope_destroy(kept);
  sextant_pool_destroy(pool);
}
#endif

}  // namespace
}  // namespace sextant
