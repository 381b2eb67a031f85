// `sextant claims`: the list fits a terminal, and its arms are those of a survey.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/command.h"

namespace sextant::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json claims(const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"claims", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const Ended ended = run(words);
  EXPECT_EQ(ended.status, 0) << ended.err;
  return json::parse(ended.out);
}

// Terminal columns: a character of three bytes of UTF-8 is Chinese here, and two columns wide.
size_t columns_of(const std::string& line) {
  size_t columns = 0;
  for (const char byte : line) {
    const auto bits = static_cast<unsigned char>(byte);
    columns += (bits & 0xC0U) == 0x80U ? 0 : bits >= 0xE0U ? 2 : 1;
  }
  return columns;
}

TEST(Claims, FitInAHundredColumns) {
  const Ended ended = run({"claims"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  std::istringstream lines(ended.out);
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_LE(columns_of(line), 100) << line;
  }
  EXPECT_GT(count, 100);
  EXPECT_THAT(ended.out, HasSubstr("\n  ALiBi holds past the training length\n"
                                   "      arms      alibi (causal)\n"
                                   "      measure   change of the sliding loss\n"
                                   "      claimed   below 0.1\n"
                                   "      source    Press et al. 2022 (arXiv 2108.12409)\n"));
}

TEST(Claims, AreSortedBySubjectInBothForms) {
  const json all = claims();
  EXPECT_TRUE(std::ranges::is_sorted(
      all, {}, [](const json& claim) { return claim.at("subject").get<std::string>(); }));
  const std::string text = run({"claims"}).out;
  size_t place = 0;
  for (const json& claim : all) {
    const size_t found = text.find("\n  " + claim.at("claim").get<std::string>() + "\n");
    ASSERT_NE(found, std::string::npos) << claim;
    EXPECT_GE(found, place);
    place = found;
  }
  EXPECT_THAT(text, HasSubstr("\n" + std::to_string(all.size()) + " claims, "));
}

TEST(Claims, HaveArmsTaskSourceAndBound) {
  for (const json& claim : claims()) {
    EXPECT_FALSE(claim.at("source").get<std::string>().empty());
    EXPECT_THAT((std::set<std::string>{"causal", "masked"}), ::testing::Contains(claim.at("task")));
    EXPECT_THAT(claim.at("arms").size(), ::testing::AnyOf(1, 2));
    EXPECT_THAT((std::set<std::string>{"below", "above"}), ::testing::Contains(claim.at("side")));
    EXPECT_TRUE(claim.at("bound").is_number());
  }
}

TEST(Claims, OfOpenQuestionsAreSome) {
  const json all = claims(), open = claims({"--open"});
  EXPECT_GT(open.size(), 20);
  EXPECT_LT(open.size(), all.size());
  for (const json& claim : open) EXPECT_TRUE(claim.at("question").is_string()) << claim;
  EXPECT_THAT(run({"claims", "--open"}).out,
              AllOf(HasSubstr("      question  How far does NTK really reach?\n"),
                    Not(HasSubstr("  ALiBi holds past the training length\n"))));
}

#ifdef SEXTANT_HAS_LABORATORY
// An arm with a default spelled out would not be found (same_arm.h).
TEST(Claims, SpellOutNoDefault) {
  std::set<std::string> named;
  for (const json& claim : claims()) {
    for (const std::string arm : claim.at("arms")) named.insert(arm);
  }
  for (const json& method : json::parse(run({"methods", "--json"}).out)) {
    for (const auto& option : method.at("options").items()) {
      const json& value = option.value();
      const std::string words = value.is_string() ? value.get<std::string>() : value.dump();
      for (const std::string& arm : named) {
        if (!arm.starts_with(method.at("name").get<std::string>() + ":")) continue;
        EXPECT_THAT(arm + ":", Not(HasSubstr(":" + option.key() + "=" + words + ":")));
      }
    }
  }
}
#endif

}  // namespace
}  // namespace sextant::cli
