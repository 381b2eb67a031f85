// In float32 the kernels of the cuda backend, on the CPU, compute what the float64 reference
// computes, within the bounds of bounds.h, and the same bits in both orders of warps.
#include <gtest/gtest.h>

#include "tests/attention/cpu_draws.h"
#include "tests/attention/cuda/fiber_backend.h"

namespace sextant {
namespace {

const Backend& float32() { return cuda::fiber_float32_backend(); }

TEST(CudaAgreement, HoldsForEveryCombinationOfOperands) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    expect_agrees(draw_options(seed, seed % 10 == 0 ? 130 : 40), serial_executor(), float32());
  }
}

TEST(CudaAgreement, HoldsForOperandsOf16BitsInEveryCombination) {
  for (uint64_t seed = 2000; seed < 2016; ++seed) {
    SCOPED_TRACE(seed);
    expect_agrees(draw_narrow_options(seed, 40), serial_executor(), float32());
  }
}

TEST(CudaAgreement, HoldsForWideRows) {
  for (const int64_t columns : {65, 96, 128, 200, 256}) {
    RandomOptions o = {.batch = 1, .heads = 2, .key_heads = 1, .queries = 19, .keys = 37};
    o.columns = columns;
    o.value_columns = columns == 200 ? 72 : columns;
    o.rotated = columns % 2 == 0;
    o.on_query = o.on_key = o.on_value = columns != 256;
    o.q_imag = columns == 96;
    expect_agrees(o, serial_executor(), float32());
  }
}

// Several tiles of queries and of keys, frames and sweeps, with rows of r wider than those of q.
TEST(CudaAgreement, HoldsForAxesAndQueriesOfTables) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    RandomOptions o = {.queries = 70, .keys = 90, .columns = 16, .value_columns = 16};
    o.key_ranges = RandomOptions::KeyRanges::kWhole;
    o.seed = seed;
    o.packed = o.sweeps = 1 + static_cast<int>(seed % 2);
    o.position_axes = 3;
    o.axis_width = 7;
    o.axis_bias = seed != 1;
    o.axis_on_query = o.query_sink = seed != 2;
    o.on_query = seed % 3 != 0;
    o.table_query = seed < 2 ? 0 : seed == 2 ? 100 : 33;
    o.rotated = o.q_imag = o.key_bias = seed % 2 == 0;
    o.softcap = seed == 5 ? 1.5 : 0;
    o.mask = o.shared_tables = seed == 4;
    expect_agrees(o, serial_executor(), float32());
  }
}

TEST(CudaAgreement, RefusesQueriesOfTablesThatNoTileHolds) {
  try {
    const CpuOutcome outcome({.on_query = true, .table_query = 257}, serial_executor(), float32());
    FAIL() << "expected an error";
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(),
                 "attention: table_query.columns: expected at most 256 for the backend \"cuda\", "
                 "but got 257");
  }
}

// A barrier that is missing between warps shows as different bits.
void expect_same_in_both_orders(const RandomOptions& options, const Backend& backend) {
  const CpuOutcome ascending(options, serial_executor(), backend);
  cuda::set_order(cuda::fibers::Order::kDescending);
  const CpuOutcome descending(options, serial_executor(), backend);
  cuda::set_order(cuda::fibers::Order::kAscending);
  expect_same_bits(ascending, descending);
}

TEST(CudaAgreement, HasTheSameBitsInBothOrdersOfWarps) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    SCOPED_TRACE(seed);
    RandomOptions options = draw_options(seed, 70);
    if (seed % 4 == 3)
      options.dtypes = {.q = DType::kBfloat16, .k = DType::kBfloat16, .v = DType::kBfloat16};
    expect_same_in_both_orders(options, seed % 4 == 3 ? cuda::fiber_backend() : float32());
  }
}

// A block then sums the gradients of axes over several tiles of queries.
TEST(CudaAgreement, HoldsForMoreTilesThanBlocks) {
  RandomOptions o = {.batch = 100, .heads = 2, .key_heads = 1, .queries = 20, .keys = 35};
  o.position_axes = 3;
  o.axis_bias = o.axis_on_query = true;
  expect_agrees(o, serial_executor(), float32());
  expect_same_in_both_orders(o, float32());
}

// Both passes give back the memory that they took.
TEST(CudaAgreement, GivesItsMemoryBack) {
  const int64_t before = cuda::blocks_in_use();
  const CpuOutcome outcome(draw_options(1, 40), serial_executor(), float32());
  EXPECT_EQ(cuda::blocks_in_use(), before);
}

}  // namespace
}  // namespace sextant
