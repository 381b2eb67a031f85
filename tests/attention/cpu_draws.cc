#include "tests/attention/cpu_draws.h"

#include <gtest/gtest.h>

namespace sextant {

CpuOutcome::CpuOutcome(const RandomOptions& options, const Executor& executor,
                       const Backend& backend)
    : Outcome(options) {
  attend(random.score, result, backend, executor);
  attend_backward(random.score, as_const(result), random.d_out, grad, backend, executor);
}

void expect_agrees(const RandomOptions& options, const Executor& executor, const Backend& backend) {
  const CpuOutcome got(options, executor, backend);
  for (const oracle::Worst& worst : Expected(options, got).differences(got))
    EXPECT_LE(worst.ratio, 1) << worst.where << "\n" << to_string(options);
}

void expect_same_bits(const AnyView<const float>& a, const AnyView<const float>& b,
                      const char* what) {
  ASSERT_EQ(different_bits(a, b, what), "");
}

void expect_same_bits(const CpuOutcome& a, const CpuOutcome& b) {
  ASSERT_EQ(different_bits(a, b), "");
}

}  // namespace sextant
