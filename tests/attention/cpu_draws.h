// Random problems for the cpu backend: every operand in every combination, at odd sizes.
#pragma once

#include <cstdint>

#include "sextant/attention/attend.h"
#include "sextant/base/executor.h"
#include "tests/attention/random_score.h"

namespace sextant {

// Every operand is there or not; sizes from those at which tiles begin and end. most_rows bounds
// the oracle's time.
RandomOptions draw_options(uint64_t seed, int64_t most_rows = 300);

// The same with operands, d_out and out each in any format.
RandomOptions draw_narrow_options(uint64_t seed, int64_t most_rows = 300);

// The same, long enough to be cut into several units, splits and tasks.
RandomOptions draw_long_options(uint64_t seed, int64_t queries);

// A score with its results and gradients, computed by a backend in float32.
struct CpuOutcome {
  explicit CpuOutcome(const RandomOptions& options, const Executor& executor = serial_executor(),
                      const Backend& backend = cpu_backend());

  RandomScore<float> random;
  Attended<float> result;
  ScoreGrad<float> grad;
};

// Fails the test where results or gradients stray from float64 further than
// tests/attention/bounds.h allows; an `out` of 16 bits may be rounded once besides.
void expect_agrees(const RandomOptions& options, const Executor& executor = serial_executor(),
                   const Backend& backend = cpu_backend());

// Fails the test where an element differs in any bit.
void expect_same_bits(const AnyView<const float>& a, const AnyView<const float>& b,
                      const char* what);
void expect_same_bits(const CpuOutcome& a, const CpuOutcome& b);

}  // namespace sextant
