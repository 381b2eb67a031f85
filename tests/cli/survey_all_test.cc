// Surveys every method through the command, as users would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "sextant/files/json_fields.h"
#include "sextant/lab/result/result.h"
#include "sextant/torch/method.h"
#include "tests/cli/command.h"
#include "tests/cli/small_text.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::cli {
namespace {

TEST(SurveyOfAll, TrainsEveryMethodWithoutNaN) {
  const TemporaryFolder folder;
  write_small_text(folder / "text");
  const Ended ended =
      run({"survey", "--smoke", "--methods", "all", "--bytes", "5120", "--blocks", "2", "--text",
           (folder / "text").string(), "--share", "0.2", "--out", (folder / "out").string()});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, ::testing::Not(::testing::HasSubstr("nan")));

  std::set<std::string> trained, known;
  const nlohmann::json results = read_json(folder / "out/results.json");
  for (const nlohmann::json& entry : results.at("arms")) {
    const auto result = entry.get<lab::ArmResult>();
    trained.insert(result.arm.method);
    EXPECT_FALSE(result.diverged) << result.arm.name();
    const bool pairs = result.arm.task == lab::Task::kPairs;
    EXPECT_EQ(result.lengths.size(), pairs ? 0 : 4) << result.arm.name();
    EXPECT_EQ(result.retrieval.empty(), !pairs) << result.arm.name();
    for (const lab::AtLength& at : result.lengths) {
      EXPECT_TRUE(std::isfinite(at.loss.value)) << result.arm.name();
    }
  }
  for (const MethodInfo& info : methods())
    if (!info.grid_option) known.insert(info.name);
  EXPECT_EQ(trained, known);
}

}  // namespace
}  // namespace sextant::cli
