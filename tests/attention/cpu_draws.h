// Random problems for the cpu backend: every operand in every combination, at odd sizes.
#pragma once

#include <cstdint>

#include "sextant/attention/attend.h"
#include "sextant/base/executor.h"
#include "tests/attention/random_score.h"

namespace sextant {

// Draws whether each operand is present, and sizes around the edges of tiles. most_rows limits
// queries and keys, and so the oracle's time.
RandomOptions draw_options(uint64_t seed, int64_t most_rows = 300);

// The same with each of the operands, d_out and out in any format.
RandomOptions draw_narrow_options(uint64_t seed, int64_t most_rows = 300);

// The same with enough rows to be split into several tasks.
RandomOptions draw_long_options(uint64_t seed, int64_t queries);

// A random score with its results and gradients, computed by a backend in float32.
struct CpuOutcome {
  explicit CpuOutcome(const RandomOptions& options, const Executor& executor = serial_executor(),
                      const Backend& backend = cpu_backend());

  RandomScore<float> random;
  Attended<float> result;
  ScoreGrad<float> grad;
};

// Fails the test if results or gradients differ from the float64 reference by more than
// tests/attention/bounds.h allows; an `out` of 16 bits may be off by one more rounding.
void expect_agrees(const RandomOptions& options, const Executor& executor = serial_executor(),
                   const Backend& backend = cpu_backend());

// Fails the test if any bit of any element differs.
void expect_same_bits(const AnyView<const float>& a, const AnyView<const float>& b,
                      const char* what);
void expect_same_bits(const CpuOutcome& a, const CpuOutcome& b);

}  // namespace sextant
