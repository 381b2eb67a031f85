// A cache in int8 equals, bit by bit, a float32 cache of the numbers that its integers stand for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"
#include "sextant/cache/cache_file.h"
#include "sextant/cache/kv_cache.h"
#include "tests/attention/host_backends.h"
#include "tests/attention/tensor.h"
#include "tests/cache/sequences.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;

KvCacheShape int8_shape(DType dtype = DType::kBfloat16) {
  KvCacheShape shape = kShape;
  shape.dtype = dtype;
  shape.int8 = true;
  return shape;
}

// A float32 cache of the rows that a sequence of an int8 cache stands for.
KvCache as_float(const KvCache& cache, int64_t sequence) {
  KvCache wide(kShape);
  filled(wide, read(cache, sequence), cache.first_position(sequence));
  return wide;
}

// The largest magnitude of rows [first, last) of a head and column.
float most_of_column(const Tensor<float>& x, int64_t h, int64_t c, int64_t first, int64_t last) {
  float most = 0;
  for (int64_t i = first; i < last; ++i) most = std::max(most, std::abs(x(0, h, i, c)));
  return most;
}

TEST(Int8Cache, RoundsFullPagesByColumnsOfKeysAndRowsOfValues) {
  const int64_t length = 75, full = 64;
  Rows rows(length, 1);
  for (int64_t i = 0; i < length; ++i) rows.k(0, 1, i, 2) *= 1000;  // an outlier column
  KvCache cache(int8_shape(DType::kFloat32));
  const Rows got = read(cache, filled(cache, rows));
  for (int64_t h = 0; h < kHeads; ++h)
    for (int64_t i = 0; i < length; ++i) {
      const int64_t page = i / 16 * 16;
      for (int64_t c = 0; c < kColumns; ++c) {
        const float half = most_of_column(rows.k, h, c, page, std::min(page + 16, length)) / 254;
        EXPECT_NEAR(got.k(0, h, i, c), rows.k(0, h, i, c), i < full ? 1.0001F * half : 0);
      }
      float most = 0;
      for (int64_t c = 0; c < kValueColumns; ++c)
        most = std::max(most, std::abs(rows.v(0, h, i, c)));
      for (int64_t c = 0; c < kValueColumns; ++c)
        EXPECT_NEAR(got.v(0, h, i, c), rows.v(0, h, i, c), i < full ? 1.0001F * most / 254 : 0);
    }
  EXPECT_EQ(cache.int8_key_pages().numbers.batch, 4);
  EXPECT_EQ(cache.pages_in_use(), 5);
}

TEST(Int8Cache, AttendsAsItsNumbersInFloat32) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat16})
    for (const int64_t length : {64, 75, 300}) {
      const Model1 m(length, 2);
      const Rotation rotation = rope(4);
      KvCache cache(int8_shape(dtype));
      const int64_t sequence = filled(cache, m.rows, 5);
      const KvCache wide = as_float(cache, sequence);
      for (const Rotation* of_keys : {static_cast<const Rotation*>(nullptr), &rotation})
        for (const int64_t queries : {1, 3, 7, 30, 64}) {
          const Tensor<float> q = copied(part(m.q, 0, queries));
          EXPECT_EQ(attend_cached(cache, {{sequence, of_keys}}, q).data,
                    attend_cached(wide, {{0, of_keys}}, q).data)
              << queries << " of " << length;
        }
    }
}

TEST(Int8Cache, AttendsAsTheReferenceBackend) {
  const Model1 m(75, 3);
  const Rotation rotation = rope();
  KvCache cache(int8_shape());
  const std::vector<CachedBatch::Entry> entries = {{filled(cache, m.rows), &rotation}};
  const Tensor<float> q = copied(part(m.q, 0, 9));
  const CachedBatch batch(cache, entries, q.rows);
  Score<float> score = {{.q = q.view(), .scale = 0.3}};
  batch.place(score);
  Tensor<float> out(1, q.heads, q.rows, kValueColumns), lse(1, q.heads, q.rows, 1);
  attend<float>(score, {out.view(), lse.view()}, reference_backend(), serial_executor());
  EXPECT_LT(largest_difference(attend_cached(cache, entries, q), out), 1e-6);
}

// Sizes of a model: pages of 256 rows, of which kernels copy some at a time.
TEST(Int8Cache, AttendsInUnitsOfAModelAsItsNumbersInFloat32) {
  const int64_t rows = 700, columns = 64;
  const KvCacheShape sizes = {.key_heads = 2, .key_columns = columns, .value_columns = columns};
  KvCacheShape int8 = sizes;
  int8.dtype = DType::kBfloat16;
  int8.int8 = true;
  KvCache cache(int8), wide(sizes);
  Tensor<float> k = random(1, 2, rows, columns, 1), v = random(1, 2, rows, columns, 2);
  cache.append(cache.add(), k.view(), v.view());
  cache.read(0, 0, k.view(), v.view());
  wide.append(wide.add(), k.view(), v.view());
  const Rotation rotation = sextant::rotation(rotary({.dim = columns}));
  for (const Rotation* of_keys : {static_cast<const Rotation*>(nullptr), &rotation})
    for (const int64_t heads : {2, 4, 8, 16})
      for (const int64_t queries : {1, 2, 12}) {
        const Tensor<float> q = random(1, heads, queries, columns, 3);
        Tensor<float> got(1, heads, queries, columns), expected = got, lse(1, heads, queries, 1);
        const auto attend_to = [&](const KvCache& from, const Backend& backend, Tensor<float>& to) {
          const CachedBatch::Entry entries[] = {{0, of_keys}};
          const CachedBatch batch(from, entries, queries);
          Score<float> score = {{.q = q.view(), .scale = 0.1}};
          batch.place(score);
          attend<float>(score, {to.view(), lse.view()}, backend);
        };
        for (const Backend* backend : host_backends()) {
          attend_to(cache, *backend, got);
          attend_to(wide, *backend, expected);
          EXPECT_EQ(got.data, expected.data) << backend->name << ", " << heads << ", " << queries;
        }
      }
}

// A sequence beside others has the bits that it has alone; decoding_test.cc has threads.
TEST(Int8Cache, BitsDoNotDependOnTheBatch) {
  KvCache cache(int8_shape());
  const Rotation rotation = rope();
  const std::vector<int64_t> lengths = {75, 16, 300};
  std::vector<CachedBatch::Entry> entries;
  for (const int64_t length : lengths)
    entries.push_back({filled(cache, Rows(length, static_cast<uint64_t>(length))), &rotation});
  const auto batch = static_cast<int64_t>(entries.size());
  const Tensor<float> q = random(batch, 2 * kHeads, 3, kColumns, 11);
  const Tensor<float> together = attend_cached(cache, entries, q);
  const int64_t size = std::ssize(together.data) / batch;
  for (int64_t b = 0; b < batch; ++b) {
    View<const float> own = q.view();
    own.data = own.at(b, 0, 0);
    own.batch = 1;
    const Tensor<float> alone =
        attend_cached(cache, {entries[static_cast<size_t>(b)]}, copied(own));
    EXPECT_TRUE(std::equal(alone.data.begin(), alone.data.end(), together.data.begin() + b * size));
  }
}

// Rows in one call, one at a time, and in pieces fill the same pages.
TEST(Int8Cache, DoesNotDependOnHowRowsWereAppended) {
  const Rows rows(75, 4);
  KvCache cache(int8_shape());
  const int64_t whole = filled(cache, rows);
  for (const int64_t step : {1, 7, 16, 40}) {
    const int64_t sequence = cache.add();
    for (int64_t row = 0; row < 75; row += step)
      cache.append(sequence, part(rows.k, row, std::min<int64_t>(row + step, 75)),
                   part(rows.v, row, std::min<int64_t>(row + step, 75)));
    EXPECT_EQ(read(cache, sequence).k.data, read(cache, whole).k.data);
    EXPECT_EQ(read(cache, sequence).v.data, read(cache, whole).v.data);
  }
}

TEST(Int8Cache, SharesRemovesAndMovesRows) {
  const Rows rows(75, 5), more(20, 6);
  KvCache cache(int8_shape(DType::kFloat32));
  const int64_t a = filled(cache, rows, 9);
  const Rows before = read(cache, a);
  const int64_t fork = cache.fork(a, 40);  // within a page of integers
  EXPECT_EQ(cache.pages_in_use(), 5);
  EXPECT_EQ(read(cache, fork).k.data, copied(part(before.k, 0, 40)).data);
  cache.append(fork, more.k.view(), more.v.view());
  EXPECT_EQ(read(cache, a).k.data, before.k.data);
  EXPECT_EQ(read(cache, a).v.data, before.v.data);
  EXPECT_EQ(cache.rows(fork), 60);
  for (int64_t i = 48; i < 60; ++i)  // the open page
    EXPECT_EQ(read(cache, fork).k(0, 1, i, 3), more.k(0, 1, i - 40, 3));
  cache.remove(fork);
  EXPECT_EQ(cache.pages_in_use(), 5);

  cache.drop(a, 20, 10);
  const Rows after = read(cache, a);
  EXPECT_EQ(cache.rows(a), 65);
  EXPECT_EQ(cache.pages_in_use(), 5);
  EXPECT_EQ(copied(part(after.k, 0, 16)).data, copied(part(before.k, 0, 16)).data);
  for (int64_t h = 0; h < kHeads; ++h)
    for (int64_t i = 16; i < 65; ++i)
      for (int64_t c = 0; c < kColumns; ++c)
        EXPECT_NEAR(after.k(0, h, i, c), before.k(0, h, i < 20 ? i : i + 10, c), 0.03);
  cache.truncate(a, 50);
  cache.append(a, more.k.view(), more.v.view());
  EXPECT_EQ(cache.rows(a), 70);
  cache.rerotate(a, 1000);
  EXPECT_EQ(cache.first_position(a), 1000);
  cache.remove(a);
  EXPECT_EQ(cache.pages_in_use(), 0);
}

TEST(Int8Cache, DropsNothingAndWholePagesExactly) {
  KvCache cache(int8_shape());
  const int64_t sequence = filled(cache, Rows(75, 12));
  const Rows before = read(cache, sequence);
  for (const int64_t first : {0, 5, 64, 75}) cache.drop(sequence, first, 0);
  EXPECT_EQ(read(cache, sequence).k.data, before.k.data);
  cache.drop(sequence, 16, 32);
  const Rows after = read(cache, sequence);
  EXPECT_EQ(cache.pages_in_use(), 3);
  EXPECT_EQ(copied(part(after.k, 0, 16)).data, copied(part(before.k, 0, 16)).data);
  EXPECT_EQ(copied(part(after.v, 16, 43)).data, copied(part(before.v, 48, 75)).data);
}

// Sequences of full pages only, as they come from files.
TEST(Int8Cache, AttendsWithoutPagesOfFloats) {
  KvCache cache(int8_shape());
  std::vector<CachedBatch::Entry> entries;
  for (const int64_t rows : {32, 16}) {
    KvCache other(int8_shape());
    const std::string file = cache_file(other, filled(other, Rows(rows, 13)));
    entries.push_back({add_cache_file(file, cache), nullptr});
  }
  EXPECT_EQ(cache.key_pages().batch, 0);
  const Tensor<float> q = random(2, 2 * kHeads, 1, kColumns, 14);
  EXPECT_EQ(attend_cached(cache, entries, q).batch, 2);
}

// Scales are exact for 0 and for columns whose largest number is 127 steps.
TEST(Int8Cache, KeepsZerosAndTheLargestNumbers) {
  Rows rows(16, 7);
  for (int64_t i = 0; i < 16; ++i) {
    rows.k(0, 0, i, 0) = 0;
    rows.k(0, 0, i, 1) = static_cast<float>(i) * 127;
    rows.k(0, 0, i, 2) = std::numeric_limits<float>::denorm_min();  // no scale divides it
    rows.k(0, 0, i, 3) = i % 2 == 0 ? std::numeric_limits<float>::max() : -3e38F;
  }
  KvCache cache(int8_shape(DType::kFloat32));
  const Rows got = read(cache, filled(cache, rows));
  for (int64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(got.k(0, 0, i, 0), 0);
    EXPECT_NEAR(got.k(0, 0, i, 1), static_cast<float>(i) * 127, 7.6);
    EXPECT_EQ(got.k(0, 0, i, 2), 0);
    EXPECT_NEAR(got.k(0, 0, i, 3) / rows.k(0, 0, i, 3), 1, 0.01);
  }
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Int8Cache, RefusesWhatItCannotHold) {
  Rows rows(20, 8);
  rows.k(0, 1, 17, 3) = std::numeric_limits<float>::infinity();
  KvCache cache(int8_shape());
  const int64_t sequence = cache.add();
  EXPECT_EQ(error_of([&] { cache.append(sequence, rows.k.view(), rows.v.view()); }),
            "kv cache: k: expected finite numbers, as int8 holds no others, but got inf at head 1, "
            "row 17, column 3");
  EXPECT_EQ(cache.rows(sequence), 0);
  EXPECT_THAT(error_of([&] { cache.add(0, rope()); }), HasSubstr("rotated_by: expected none"));
  EXPECT_THAT(error_of([&] { cache.hold_rotated(sequence, rope()); }),
              HasSubstr("rotated_by: expected none"));
}

TEST(Int8Cache, IsReadFromTheFileThatItWrites) {
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat16})
    for (const int64_t rows : {0, 5, 16, 75}) {
      KvCache cache(int8_shape(dtype));
      const int64_t sequence = filled(cache, Rows(rows, 10), 7);
      const std::string file = cache_file(cache, sequence);
      EXPECT_EQ(cache_file_shape(file), cache.shape());
      KvCache loaded(cache_file_shape(file));
      const int64_t again = add_cache_file(file, loaded);
      EXPECT_EQ(loaded.first_position(again), 7);
      EXPECT_EQ(read(loaded, again).k.data, read(cache, sequence).k.data);
      EXPECT_EQ(read(loaded, again).v.data, read(cache, sequence).v.data);
      EXPECT_EQ(cache_file(loaded, again), file);
      for (size_t size = 0; size < file.size(); size += 7)
        EXPECT_THROW(add_cache_file(file.substr(0, size), loaded), Error);
      EXPECT_EQ(loaded.pages_in_use(), (rows + 15) / 16);
      KvCacheShape longer = cache.shape();
      longer.page_rows = 32;
      KvCache other(longer);
      EXPECT_THAT(error_of([&] { add_cache_file(file, other); }),
                  HasSubstr("page rows at byte 72: expected 32"));
    }
}

TEST(Int8Cache, OperandsAreChecked) {
  const Model1 m(40, 9);
  KvCache cache(int8_shape());
  const std::vector<CachedBatch::Entry> entries = {{filled(cache, m.rows), nullptr}};
  const Tensor<float> q = copied(part(m.q, 0, 1));
  const CachedBatch batch(cache, entries, 1);
  Tensor<float> out(1, q.heads, 1, kValueColumns), lse(1, q.heads, 1, 1);
  const auto refused = [&](const std::function<void(Score<float>&)>& change) {
    Score<float> score = {{.q = q.view(), .scale = 0.3}};
    batch.place(score);
    change(score);
    return error_of([&] { attend<float>(score, {out.view(), lse.view()}, cpu_backend()); });
  };
  EXPECT_EQ(refused([](auto&) {}), "no error");
  EXPECT_THAT(refused([](auto& s) { s.v_int8 = {}; }), HasSubstr("k_int8, v_int8: expected both"));
  EXPECT_THAT(refused([](auto& s) { s.k_int8 = s.v_int8 = {}; }), HasSubstr("pages.at[0, 0]"));
  EXPECT_THAT(refused([](auto& s) { s.k_int8.scale.columns = 3; }),
              HasSubstr("k_int8.scale.columns: expected 8"));
  EXPECT_THAT(refused([](auto& s) { s.v_int8.numbers.rows = 3; }),
              HasSubstr("v_int8.numbers.rows: expected 16"));
  EXPECT_THAT(refused([](auto& s) { --s.k_int8.numbers.batch; }), HasSubstr("int8"));
}

}  // namespace
}  // namespace sextant::testing
