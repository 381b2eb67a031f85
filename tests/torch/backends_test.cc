// Every method on every backend of the CPU. 4000 keys are enough for sums over keys to outgrow a
// narrow number.
#include <vector>

#include "tests/attention/host_backends.h"
#include "tests/torch/method_on_backend.h"

namespace sextant::testing {
namespace {

std::vector<BackendCase> every_backend() {
  std::vector<BackendCase> all;
  for (const Backend* backend : host_backends()) all.push_back({backend});
  return all;
}

class EveryMethodAndBackend : public MethodOnBackend {};

INSTANTIATE_TEST_SUITE_P(All, EveryMethodAndBackend,
                         ::testing::Combine(::testing::ValuesIn(method_cases()),
                                            ::testing::ValuesIn(every_backend())),
                         title);

TEST_P(EveryMethodAndBackend, AgreesWithTheOracleAt300Tokens) {
  expect_agreement(300, 300);
  expect_agreement(1, 300);  // decoding
}

TEST_P(EveryMethodAndBackend, AgreesWithTheOracleAt4000Tokens) {
  if (subject_.integrates) GTEST_SKIP() << case_.title << " integrates its positions in float32";
  expect_agreement(24, 4000);
  expect_agreement(1, 4000);
}

}  // namespace
}  // namespace sextant::testing
