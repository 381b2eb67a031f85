#include "sextant/lab/report/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "sextant/lab/plan/arms.h"

namespace sextant::lab {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

std::vector<Claim> all_claims() {
  std::vector<Claim> all;
  for (const ClaimSubject& subject : claim_subjects()) {
    all.insert(all.end(), subject.claims.begin(), subject.claims.end());
  }
  return all;
}

TEST(ClaimTables, AreSortedBySubjectAndSayEachClaimOnce) {
  EXPECT_TRUE(std::ranges::is_sorted(claim_subjects(), {}, [](const ClaimSubject& subject) {
    return std::string_view(subject.name);
  }));
  std::set<std::string_view> texts;
  for (const Claim& claim : all_claims()) {
    EXPECT_TRUE(texts.insert(claim.text).second) << claim.text;
    EXPECT_NE(std::string_view(claim.source), "") << claim.text;
    EXPECT_NE(std::string_view(claim.method), "") << claim.text;
    EXPECT_NE(std::string_view(claim.method), claim.other) << claim.text;
  }
  EXPECT_GT(texts.size(), 44);
}

TEST(ClaimTables, NameArmsThatASurveyCanMake) {
  for (const Claim& claim : all_claims()) {
    for (const ClaimedArms& arms : instances(claim, {})) {
      for (const std::string& arm : {arms.method, arms.other}) {
        if (arm.empty()) continue;
        EXPECT_TRUE(claimed_identity(arm, Task::kText, {}).has_value()) << arm;
      }
    }
  }
}

TEST(Instances, AreOneForEachValueOfAFreeOption) {
  const Claim claim{.method = "pi:tune=N", .other = "rope:weights=rope:tune=N"};
  const std::vector<Arm> arms = make_arms({"pi:tune=60", "ntk:tune=5", "rope"}, 2, {});
  std::vector<std::string> named;
  for (const ClaimedArms& one : instances(claim, arms))
    named.push_back(one.method + " " + one.other);
  EXPECT_THAT(named, ElementsAre("pi:tune=5 rope:weights=rope:tune=5",
                                 "pi:tune=60 rope:weights=rope:tune=60"));
  EXPECT_EQ(instances(claim, {}).size(), 0);
  EXPECT_EQ(instances({.method = "rope"}, arms).size(), 1);
}

TEST(ArmsOfClaims, AreThoseOfTheOpenQuestions) {
  const std::vector<std::string> arms = arms_of_claims(true, {});
  for (const char* arm : {"tener",
                          "tener:scaled=true",
                          "shaw",
                          "shaw:clip=1",
                          "shaw:clip=2",
                          "shaw:clip=4",
                          "shaw:clip=64",
                          "shaw:values=false",
                          "ntk",
                          "pi",
                          "pi:tune=40",
                          "ntk:tune=40",
                          "yarn:tune=40",
                          "rope",
                          "rope:weights=rope:tune=40",
                          "sinusoidal",
                          "sinusoidal:base=100",
                          "sinusoidal:base=1e6",
                          "rope:base=100",
                          "rope:base=1e6",
                          "binary",
                          "alibi",
                          "window",
                          "none",
                          "nezha"}) {
    EXPECT_EQ(std::ranges::count(arms, arm), 1) << arm;
  }
  EXPECT_THAT(arms, Not(Contains("kerple-log"))) << "of no open question";
  EXPECT_THAT(arms_of_claims(false, {}), Contains("kerple-log"));
}

TEST(ArmsOfClaims, HaveNoFreeOptionLeft) {
  const std::vector<std::string> arms = arms_of_claims(true, {});
  EXPECT_THAT(arms, Contains("binary:drop_channels=1"));
  for (const std::string& arm : arms) {
    EXPECT_THAT(arm, Not(testing::ContainsRegex("=[NKM]($|:)")));
    EXPECT_FALSE(make_arms(std::vector{arm}, 1, {}).empty()) << arm;
  }
}

TEST(ArmsOfClaims, OfEncodersAreApart) {
  EXPECT_THAT(arms_of_claims(true, {.objective = Objective::kMasked}),
              testing::IsSupersetOf({"alibi", "shaw", "tener", "sinusoidal", "nezha", "none"}));
  EXPECT_THAT(arms_of_claims(true, {}), Not(Contains("alibi:future_scale=0.5")));
}

}  // namespace
}  // namespace sextant::lab
