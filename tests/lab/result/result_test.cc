#include "sextant/lab/result/result.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/lab/arm_results.h"

namespace sextant::lab {
namespace {

TEST(ArmResult, SurvivesJson) {
  for (const ArmResult& result : {arm_result("rope", 3, 0.1 + 0.2), pair_result("t5", 1, 0.3, 0)}) {
    const nlohmann::json written = result;
    EXPECT_EQ(nlohmann::json(nlohmann::json::parse(written.dump()).get<ArmResult>()), written);
  }
}

}  // namespace
}  // namespace sextant::lab
