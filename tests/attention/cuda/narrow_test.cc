// With operands of 16 bits the kernels of the cuda backend differ from float64 by the roundings of
// tables, rotated rows, weights and gradients of scores to that type, and by no more:
// tests/attention/rounded_products.cc has the bounds.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/attention/cpu_draws.h"
#include "tests/attention/cuda/fiber_backend.h"

namespace sextant {
namespace {

void expect_within(RandomOptions options, DType type) {
  options.grows = false;
  options.dtypes = {.q = type, .k = type, .v = type, .q_imag = type, .d_out = type};
  options.dtypes.out = DType::kFloat32;
  const CpuOutcome got(options, serial_executor(), cuda::fiber_backend());
  Expected expected(options, got);
  expected.allow_rounded_products(type);
  for (const oracle::Worst& worst : expected.differences(got))
    EXPECT_LE(worst.ratio, 1) << worst.where << "\n" << to_string(options);
}

TEST(CudaNarrow, HoldsForEveryCombinationOfOperandsInBfloat16) {
  for (uint64_t seed = 0; seed < 24; ++seed)
    expect_within(draw_options(seed, seed % 8 == 0 ? 70 : 40), DType::kBfloat16);
}

TEST(CudaNarrow, HoldsForEveryCombinationOfOperandsInFloat16) {
  for (uint64_t seed = 100; seed < 110; ++seed) {
    RandomOptions options = draw_options(seed, 40);
    options.columns = std::min<int64_t>(options.columns, 64);
    options.value_columns = std::min<int64_t>(options.value_columns, 64);
    expect_within(options, DType::kFloat16);
  }
}

}  // namespace
}  // namespace sextant
