// The cpu backend computes what the float64 reference computes, within the bounds of bounds.h.
#include <gtest/gtest.h>

#include "tests/attention/cpu_draws.h"
#include "tests/attention/every_target.h"

namespace sextant {
namespace {

using KeyRanges = RandomOptions::KeyRanges;

TEST(CpuAgreement, HoldsForEveryCombinationOfOperands) {
  const auto pool = make_thread_pool(2);
  for (uint64_t seed = 0; seed < 100; ++seed)
    expect_agrees(draw_options(seed), seed % 2 == 0 ? serial_executor() : *pool);
}

TEST(CpuAgreement, HoldsForEveryHeadSize) {
  for (int64_t columns = 1; columns <= 256; columns += columns < 34         ? 1
                                                       : columns % 16 == 15 ? 1
                                                                            : 8) {
    RandomOptions o = {.batch = 1, .heads = 2, .key_heads = 1, .queries = 19, .keys = 35};
    o.columns = columns;
    o.value_columns = columns % 3 == 0 ? columns + 1 : columns;
    o.rotated = columns % 2 == 0;
    o.on_query = o.on_value = columns % 5 == 0;
    o.on_key = columns % 7 == 0;
    o.odd_strides = columns % 4 == 1;
    o.seed = static_cast<uint64_t>(columns);
    expect_agrees(o);
  }
}

TEST(CpuAgreement, HoldsForEveryLength) {
  for (const int64_t keys : {0, 1, 2, 7, 16, 17, 255, 256, 257, 1023})
    for (const int64_t queries : {int64_t{0}, int64_t{1}, int64_t{3}, keys})
      for (const KeyRanges key_ranges : {KeyRanges::kCausal, KeyRanges::kWhole}) {
        RandomOptions o = {
            .batch = 1, .heads = 1, .key_heads = 1, .queries = queries, .keys = keys};
        o.key_ranges = key_ranges;
        o.bias = o.rotated = key_ranges == KeyRanges::kCausal;
        o.on_query = key_ranges == KeyRanges::kWhole;
        o.clip = queries == 3 ? 4 : 0;
        expect_agrees(o);
      }
}

TEST(CpuAgreement, HoldsForNumbersOf16BitsInEveryCombination) {
  const auto pool = make_thread_pool(2);
  for (uint64_t seed = 2000; seed < 2100; ++seed)
    expect_agrees(draw_narrow_options(seed), seed % 2 == 0 ? serial_executor() : *pool);
}

TEST(CpuAgreement, HoldsForNumbersOf16BitsWhereFewQueriesShareKeys) {
  for (const DType dtype : {DType::kBfloat16, DType::kFloat16})
    for (const int64_t heads : {1, 4, 8})
      for (const int64_t keys : {1, 17, 257, 700})
        for (const bool rotated : {false, true}) {
          RandomOptions o = {
              .batch = 1, .heads = heads, .key_heads = 1, .queries = 1, .keys = keys};
          o.columns = o.value_columns = keys == 17 ? 40 : 64;
          o.rotated = rotated;
          o.odd_strides = keys == 257;
          o.dtypes = {.k = dtype, .v = dtype};
          expect_agrees(o, *make_thread_pool(2));
        }
}

TEST(CpuAgreement, HoldsOnEverySimdTarget) {
  on_every_target([] {
    for (uint64_t seed = 1000; seed < 1025; ++seed) {
      expect_agrees(draw_options(seed, 70));
      expect_agrees(draw_narrow_options(seed, 70));
    }
  });
}

}  // namespace
}  // namespace sextant
