// Outcomes of backends that compute on the host, and comparisons that fail a test.
#pragma once

#include "sextant/attention/attend.h"
#include "sextant/base/executor.h"
#include "tests/attention/outcome.h"

namespace sextant {

// Results and gradients of a random score, computed by a backend in float32.
struct CpuOutcome : Outcome {
  explicit CpuOutcome(const RandomOptions& options, const Executor& executor = serial_executor(),
                      const Backend& backend = cpu_backend());
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
