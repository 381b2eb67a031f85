// Compares the output of `sextant methods` with each method's page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/cli/command.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kSource = SEXTANT_SOURCE_DIR "/";

json all_methods() {
  const Ended ended = run({"methods", "--json"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  return json::parse(ended.out);
}

// The text with one space between words.
std::string squeezed(const std::string& text) {
  std::istringstream words(text);
  std::string word, squeezed;
  while (words >> word) squeezed += (squeezed.empty() ? "" : " ") + word;
  return squeezed;
}

// The method's formula, which is the first code block of its page.
std::string formula_of_page(const std::string& page) {
  const size_t begin = page.find("```\n"), end = page.find("\n```", begin + 1);
  return begin == std::string::npos ? "" : squeezed(page.substr(begin + 4, end - begin - 4));
}

TEST(Methods, EachHasAPageWithItsFormula) {
  const json methods = all_methods();
  ASSERT_FALSE(methods.empty());
  for (const json& method : methods) {
    const std::string name = method.at("name"), page = method.at("page");
    SCOPED_TRACE(name);
    ASSERT_TRUE(fs::exists(kSource + page)) << page;
    const std::string there = formula_of_page(read_text(kSource + page));
    const std::string formula = method.at("formula");
    EXPECT_TRUE(std::ranges::all_of(formula, [](char c) { return c >= ' ' && c <= '~'; }));
    ASSERT_NE(formula, "");
    for (size_t begin = 0; begin < formula.size();) {
      const size_t end = std::min(formula.find("; ", begin), formula.size());
      EXPECT_THAT(there, HasSubstr(formula.substr(begin, end - begin)));
      begin = end + 2;
    }
  }
}

TEST(Methods, EachPageIsOfAMethod) {
  std::set<std::string> listed;
  for (const json& method : all_methods()) listed.insert(method.at("name"));
  int pages = 0;
  for (const auto& entry : fs::directory_iterator(kSource + "docs/methods")) {
    const std::string name = entry.path().stem().string();
    if (name.starts_with("index") || name == "stretches") continue;
    EXPECT_TRUE(listed.contains(name)) << name;
    ++pages;
  }
  EXPECT_EQ(pages, listed.size());
}

TEST(Methods, ListsNamesAndSummaries) {
  const Ended ended = run({"methods"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, StartsWith("alibi           Attention with linear biases (Press et al. "
                                    "2021)\n"));
  for (const json& method : all_methods()) {
    EXPECT_THAT("\n" + ended.out,
                AllOf(HasSubstr("\n" + method.at("name").get<std::string>() + " "),
                      HasSubstr(method.at("summary"))));
  }
}

TEST(Methods, ShowsOneWithFormulaOptionsAndPage) {
  const Ended alibi = run({"methods", "alibi"});
  EXPECT_EQ(alibi.status, 0) << alibi.err;
  EXPECT_THAT(alibi.out, AllOf(HasSubstr("\n  s_ij = q_i . k_j / sqrt(d) - m_h (i - j)\n"
                                         "  m_h = 2^(-max_bias (h + 1) / n)\n"),
                               HasSubstr("\n  max_bias       8.0\n"),
                               HasSubstr("\nPage: docs/methods/alibi.md\n")));
  EXPECT_THAT(run({"methods", "none"}).out, HasSubstr("\nNo options.\n"));

  const json one = json::parse(run({"methods", "alibi", "--json"}).out);
  EXPECT_EQ(one, all_methods().at(0));
  EXPECT_EQ(one.at("options").at("max_bias"), 8.0);
}

TEST(Methods, AnUnknownNameIsRefusedWithTheNearest) {
  const auto complaint = [](const std::string& name) {
    const Ended ended = run({"methods", name});
    EXPECT_EQ(ended.status, 2);
    return ended.err;
  };
  EXPECT_THAT(complaint("alibbi"), HasSubstr("but got alibbi; the nearest are alibi, "));
  EXPECT_THAT(complaint("tranformer-xl"), HasSubstr("the nearest are transformer-xl, "));
  EXPECT_THAT(complaint("kerple"), HasSubstr("the nearest are kerple-log, kerple-power, "));
  EXPECT_THAT(complaint("yarn"),
              AllOf(HasSubstr("docs/methods/stretches.md"), Not(HasSubstr("nearest"))));
}

}  // namespace
}  // namespace sextant::cli
