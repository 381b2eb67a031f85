#include "sextant/position/query_scale.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<double> factors(QueryScale scale, const std::vector<int64_t>& positions) {
  return query_factors(scale, positions);
}

TEST(QueryScale, NoneIsOne) { EXPECT_THAT(factors({}, {0, 5, 1 << 30}), Each(1)); }

TEST(QueryScale, LognStartsAtTheTrainingLength) {
  const QueryScale logn{.law = QueryLaw::kLogn, .length = 1024};
  EXPECT_THAT(factors(logn, {-3, 0, 100, 1023}), Each(1));
  EXPECT_THAT(factors(logn, {(1 << 20) - 1}), ElementsAre(DoubleEq(2)));
  const QueryScale unclipped{.law = QueryLaw::kLognUnclipped, .length = 1024};
  EXPECT_THAT(factors(unclipped, {0, 31, 1023}), ElementsAre(0, DoubleEq(0.5), DoubleEq(1)));
}

TEST(QueryScale, TemperaturesRiseInSteps) {
  const QueryScale llama4{.law = QueryLaw::kLlama4, .length = 8192, .strength = 0.1};
  EXPECT_THAT(factors(llama4, {0, 8190, 8191, 16383}),
              ElementsAre(1, 1, DoubleEq(1 + 0.1 * std::log(2)), DoubleEq(1 + 0.1 * std::log(3))));
  const QueryScale ministral{.law = QueryLaw::kMinistral, .length = 8192, .strength = 0.1};
  EXPECT_THAT(factors(ministral, {0, 8191, 8192}),
              ElementsAre(1, 1, DoubleEq(1 + 0.1 * std::log(2))));
}

TEST(QueryScale, ErrorsNameTheField) {
  const auto error_of = [](const QueryScale& scale, const char* words) {
    EXPECT_THAT([&] { factors(scale, {1}); }, ThrowsMessage<Error>(HasSubstr(words)));
  };
  error_of({.law = QueryLaw::kLogn, .length = 1}, "query scale: length: expected at least 2");
  error_of({.law = QueryLaw::kLlama4, .strength = 1}, "query scale: length: expected at least 1");
  error_of({.law = QueryLaw::kMinistral,
            .length = 1,
            .strength = std::numeric_limits<double>::quiet_NaN()},
           "query scale: strength: expected");
}

}  // namespace
}  // namespace sextant
