// A key or value that the cache's type would round to infinity is refused, and nothing is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "sextant/base/error.h"
#include "sextant/cache/kv_cache.h"
#include "tests/attention/tensor.h"
#include "tests/cache/sequences.h"

namespace sextant::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

KvCacheShape shape_of(DType dtype) {
  KvCacheShape shape = kShape;
  shape.dtype = dtype;
  return shape;
}

void expect_refused(const std::function<void()>& call, const std::string& reason) {
  EXPECT_THAT(call, ::testing::ThrowsMessage<Error>(::testing::HasSubstr(reason)));
}

// `call` throws for `reason`, and the sequence and the pages are as before.
void expect_unchanged(const KvCache& cache, int64_t sequence, const std::function<void()>& call,
                      const std::string& reason) {
  const Rows before = read(cache, sequence);
  const int64_t pages = cache.pages_in_use(), position = cache.first_position(sequence);
  expect_refused(call, reason);
  ASSERT_EQ(cache.rows(sequence), before.k.rows);
  EXPECT_EQ(cache.pages_in_use(), pages);
  EXPECT_EQ(cache.first_position(sequence), position);
  const Rows after = read(cache, sequence);
  EXPECT_EQ(after.k.data, before.k.data);
  EXPECT_EQ(after.v.data, before.v.data);
}

TEST(KvCacheRange, Float16HoldsMagnitudesUpTo65504) {
  KvCache cache(shape_of(DType::kFloat16));
  const int64_t sequence = filled(cache, Rows(15, 1));
  Rows rows(20, 2);
  const auto append = [&] { cache.append(sequence, rows.k.view(), rows.v.view()); };
  rows.k(0, 1, 17, 3) = -70000;
  expect_unchanged(cache, sequence, append,
                   "kv cache: k: expected magnitudes up to 65504, which float16 holds, but got "
                   "-70000 at head 1, row 17, column 3");
  expect_unchanged(
      cache, sequence, [&] { cache.append_stored(sequence, rows.k.view(), rows.v.view()); },
      "k: expected magnitudes up to 65504");
  rows.k(0, 1, 17, 3) = -65504;
  rows.v(0, 0, 2, 4) = 65520;  // the least number that rounds to infinity
  expect_unchanged(cache, sequence, append, "v: expected magnitudes up to 65504");
  expect_unchanged(cache, sequence, append, "but got 65520 at head 0, row 2, column 4");
  rows.v(0, 0, 2, 4) = std::nextafter(65520.0F, 0.0F);
  append();
  EXPECT_EQ(read(cache, sequence).k(0, 1, 15 + 17, 3), -65504);
  EXPECT_EQ(read(cache, sequence).v(0, 0, 15 + 2, 4), 65504);
}

TEST(KvCacheRange, Bfloat16RefusesNumbersThatRoundToInfinity) {
  KvCache cache(shape_of(DType::kBfloat16));
  const int64_t sequence = filled(cache, Rows(3, 1));
  Rows rows(1, 2);
  rows.v(0, 1, 0, 0) = std::numeric_limits<float>::max();
  expect_unchanged(
      cache, sequence, [&] { cache.append(sequence, rows.k.view(), rows.v.view()); },
      "v: expected magnitudes up to 3.3895314e+38, which bfloat16 holds, but got 3.4028235e+38 at "
      "head 1, row 0, column 0");
}

TEST(KvCacheRange, InfinityAndNanAreHeldAsGiven) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    KvCache cache(shape_of(dtype));
    Rows rows(2, 1);
    rows.k(0, 0, 0, 0) = -kInfinity;
    rows.v(0, 0, 1, 0) = std::nanf("");
    const Rows held = read(cache, filled(cache, rows));
    EXPECT_EQ(held.k(0, 0, 0, 0), -kInfinity);
    EXPECT_TRUE(std::isnan(held.v(0, 0, 1, 0)));
  }
}

// A pair (x, x) is sqrt(2) x long, and some rotation brings all of it into one column.
TEST(KvCacheRange, KeysThatAreHeldRotatedFitAfterRotation) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    KvCache cache(shape_of(dtype));
    const float most = dtype == DType::kFloat16 ? 60000 : 3.3e38F;
    const int64_t sequence = filled(cache, Rows(2, 1), 0, rope());
    Rows rows(3, 2);
    for (int64_t row = 0; row < 3; ++row)
      rows.k(0, 1, row, 0) = rows.k(0, 1, row, kColumns / 2) = 0;
    const auto append = [&] { cache.append(sequence, rows.k.view(), rows.v.view()); };
    // At position 3, hence rotated by 3 radians, the second column becomes 1.13 times this.
    rows.k(0, 1, 1, 0) = most;
    rows.k(0, 1, 1, kColumns / 2) = -most;
    expect_unchanged(cache, sequence, append, "k, rotated: expected magnitudes up to");
    rows.k(0, 1, 1, kColumns / 2) = 0;
    append();
    EXPECT_NEAR(read(cache, sequence).k(0, 1, 3, 0) / most, std::cos(3.0), 0x1p-8);
  }
}

TEST(KvCacheRange, AMoveOfRotatedKeysThatWouldOverflowChangesNothing) {
  KvCache cache(shape_of(DType::kFloat16));
  Rows rows(6, 2);
  const int64_t sequence = filled(cache, rows, 0, rope());
  Rows held = read(cache, sequence);
  held.k(0, 1, 4, 0) = held.k(0, 1, 4, kColumns / 2) = 60000;
  cache.truncate(sequence, 0);
  cache.append_stored(sequence, held.k.view(), held.v.view());
  expect_unchanged(
      cache, sequence, [&] { cache.rerotate(sequence, 1000); },
      "rerotate: k, rotated: expected magnitudes up to 65504");
  expect_unchanged(
      cache, sequence, [&] { cache.rerotate(sequence, rope(1e6)); },
      "rerotate: k, rotated: expected magnitudes up to 65504");
  expect_unchanged(
      cache, sequence, [&] { cache.drop(sequence, 1, 1); },
      "drop: k, rotated: expected magnitudes up to 65504");
}

}  // namespace
}  // namespace sextant::testing
