// The kernels of the cuda backend, on the CPU, compute what the float64 reference computes.
#include <gtest/gtest.h>

#include "tests/attention/cpu_draws.h"
#include "tests/attention/cuda/fiber_backend.h"

namespace sextant {
namespace {

TEST(CudaAgreement, HoldsForEveryCombinationOfOperands) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    expect_agrees(draw_options(seed, seed % 10 == 0 ? 130 : 40), serial_executor(),
                  cuda::fiber_float32_backend());
  }
}
TEST(CudaAgreement, Narrow) {
  for (uint64_t seed = 2000; seed < 2040; ++seed) {
    SCOPED_TRACE(seed);
    expect_agrees(draw_narrow_options(seed, 40), serial_executor(), cuda::fiber_float32_backend());
  }
}
TEST(CudaAgreement, Order) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    const auto o = draw_options(seed, 70);
    CpuOutcome a(o, serial_executor(), cuda::fiber_float32_backend());
    cuda::set_order(cuda::fibers::Order::kDescending);
    CpuOutcome b(o, serial_executor(), cuda::fiber_float32_backend());
    cuda::set_order(cuda::fibers::Order::kAscending);
    expect_same_bits(a, b);
  }
}

}  // namespace
}  // namespace sextant
