// Every method on the kernels of the cuda backend, which run on the CPU here: each thread is a
// fiber (tests/attention/cuda/fibers.h). Fibers are slow, so sequences are short: 40 tokens are
// within one tile, and 70 are more than one.
#include "tests/attention/cuda/fiber_backend.h"
#include "tests/torch/method_on_backend.h"

namespace sextant::testing {
namespace {

class EveryMethodOnCuda : public MethodOnBackend {};

INSTANTIATE_TEST_SUITE_P(
    All, EveryMethodOnCuda,
    ::testing::Combine(::testing::ValuesIn(method_cases()),
                       ::testing::Values(BackendCase{&cuda::fiber_backend(), at::kFloat},
                                         BackendCase{&cuda::fiber_backend(), at::kBFloat16},
                                         BackendCase{&cuda::fiber_float32_backend(),
                                                     at::kBFloat16})),
    title);

TEST_P(EveryMethodOnCuda, AgreesWithTheOracle) {
  expect_agreement(40, 40);
  expect_agreement(1, 70);  // decoding
  if (&backend_ == &cuda::fiber_backend()) expect_agreement(70, 70);
}

}  // namespace
}  // namespace sextant::testing
