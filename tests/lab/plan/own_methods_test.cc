#include "sextant/lab/plan/own_methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/lab/plan/arms.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(OwnMethods, AreAFileAndAClassWithOptionsBehind) {
  const ArmRequest plain = request_of("some/mine.py:Mine");
  EXPECT_EQ(plain.method, "some/mine.py:Mine");
  EXPECT_EQ(plain.label, "mine.py:Mine");  // of folders, tables would be wide
  EXPECT_EQ(plain.options, "{}");
  const ArmRequest request = request_of("mine.py:Mine:hidden=16:memory=L");
  EXPECT_EQ(request.method, "mine.py:Mine");
  EXPECT_EQ(request.label, "mine.py:Mine:hidden=16:memory=L");
  EXPECT_EQ(nlohmann::json::parse(request.options),
            nlohmann::json({{"hidden", 16}, {"memory", "L"}}));
  EXPECT_TRUE(is_own_method(request.method));
  EXPECT_TRUE(is_own_method("runs=2/mine.py:Mine"));
  EXPECT_FALSE(is_own_method("rope:base=1e6"));
  EXPECT_FALSE(is_own_method("rope:weights=mine.py:Mine"));
  EXPECT_THAT([] { request_of("mine.py:Mine:hidden"); },
              ThrowsMessage<Error>(HasSubstr("expected NAME:OPTION=VALUE, but got hidden")));
}

TEST(OwnMethods, BelongToTheContentOfTheirFile) {
  const TemporaryFolder folder;
  const std::string method = (folder / "mine.py").string() + ":Mine";
  const auto options = [&] {
    const std::vector<Arm> arms = make_arms({method + ":hidden=16"}, 1, Settings(), ArmDefaults());
    return nlohmann::json::parse(arms.at(0).options);
  };
  write_text(folder / "mine.py", "one");
  const nlohmann::json one = options();
  EXPECT_EQ(one.at("hidden"), 16);
  EXPECT_EQ(one.at(kOwnSource), source_of_own_method(method));
  EXPECT_EQ(one, options());
  write_text(folder / "mine.py", "two");
  EXPECT_NE(one, options());
}

TEST(OwnMethods, RefuseAMissingFileAndOptionsOfOthers) {
  const TemporaryFolder folder;
  const std::string method = (folder / "mine.py").string() + ":Mine";
  const auto refuses = [&](const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { make_arms({text}, 1, Settings(), ArmDefaults()); },
                ThrowsMessage<Error>(HasSubstr(message)));
  };
  refuses(method, "expected FILE.py:CLASS, but there is no file " + (folder / "mine.py").string());
  write_text(folder / "mine.py", "");
  refuses(method + ":source=3", "source: expected no such option");
  refuses(method + ":drop_channels=4", "drop_channels: expected 0");
  std::filesystem::create_directory(folder / "other");
  write_text(folder / "other" / "mine.py", "");
  EXPECT_THAT(
      [&] {
        make_arms({method, (folder / "other/mine.py").string() + ":Mine"}, 1, Settings(),
                  ArmDefaults());
      },
      ThrowsMessage<Error>(HasSubstr("mine.py:Mine: expected one label for each method")));
  const ArmRequest reader = {
      .label = "reader", .method = "rope", .options = nlohmann::json{{"weights", method}}.dump()};
  EXPECT_THAT([&] { make_arms(std::vector{reader}, 1, Settings(), ArmDefaults()); },
              ThrowsMessage<Error>(HasSubstr("weights: expected a built-in method")));
}

}  // namespace
}  // namespace sextant::lab
