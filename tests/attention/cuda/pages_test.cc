// Keys and values in pages give the cuda backend's kernels the bits of contiguous ones.
#include <gtest/gtest.h>

#include "tests/attention/cpu_draws.h"
#include "tests/attention/cuda/fiber_backend.h"
#include "tests/attention/paged.h"

namespace sextant {
namespace {

TEST(CudaPages, GiveTheBitsOfOnePiece) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    RandomOptions o = seed % 2 == 0 ? draw_options(seed, 65) : draw_narrow_options(seed, 65);
    o.packed = 1;  // packed frames may begin at rows that are no multiple of kPageUnit
    expect_same_in_pages<float>(o, seed % 3 == 0 ? 48 : 16, cuda::fiber_float32_backend());
  }
}

TEST(CudaPages, ServeOneQueryOfBfloat16) {
  RandomOptions o = {.batch = 2, .heads = 4, .key_heads = 2, .queries = 1, .keys = 200};
  o.columns = o.value_columns = 64;
  o.rotated = true;
  o.dtypes = {.q = DType::kBfloat16, .k = DType::kBfloat16, .v = DType::kBfloat16};
  expect_same_in_pages<float>(o, 64, cuda::fiber_backend());
}

}  // namespace
}  // namespace sextant
