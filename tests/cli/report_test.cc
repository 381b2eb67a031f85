// sextant report: what it writes where, and what it refuses. tests/lab has the pages themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "sextant/files/json_fields.h"
#include "sextant/lab/report/report.h"
#include "tests/cli/command.h"
#include "tests/lab/arm_results.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Report : public ::testing::Test {
 protected:
  Report() {
    const nlohmann::json manifest{
        {"sextant", "0.2.0"}, {"settings", lab::settings_of_results()}, {"text", {{"crc32", "1"}}}};
    const std::vector<lab::ArmResult> results{lab::arm_result("t5", 0, 0.01),
                                              lab::arm_result("rope", 0, 1)};
    write_json(file_,
               lab::results_json(manifest, lab::findings_of(results, lab::settings_of_results())));
  }

  Ended report(std::vector<std::string> more) const {
    more.insert(more.begin(), {"report", file_.string()});
    return run(more, [&] { fs::current_path(folder_.path()); });
  }

  const TemporaryFolder folder_;
  const fs::path file_ = folder_ / "found.json";
};

TEST_F(Report, IsHtmlBesideTheResults) {
  const Ended ended = report({});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, (folder_ / "found.html").string() + "\n");
  EXPECT_THAT(read_text(folder_ / "found.html"), StartsWith("<!DOCTYPE html>"));
  EXPECT_EQ(report({"--out", (folder_ / "pages/").string()}).out,
            (folder_ / "pages/report.html").string() + "\n");
}

TEST_F(Report, OrMarkdownOnStandardOutput) {
  const Ended ended = report({"--markdown", "--part", "sliding", "--methods", "rope"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("| `rope` | **breaks** |"), Not(HasSubstr("t5"))));
  EXPECT_FALSE(fs::exists(folder_ / "figures")) << "there is no chart";
  const Ended chart = report({"--markdown", "--part", "sliding-by-length", "--figures", "a/b"});
  EXPECT_THAT(chart.out, HasSubstr("](a/b/sliding-by-length.svg)\n"));
  EXPECT_THAT(read_text(folder_ / "a/b/sliding-by-length.svg"), HasSubstr("<svg"));
}

TEST_F(Report, OrMarkdownInAFile) {
  const Ended ended = report({"--markdown", "--out", (folder_ / "to/page.md").string()});
  EXPECT_EQ(ended.out, (folder_ / "to/page.md").string() + "\n");
  EXPECT_THAT(read_text(folder_ / "to/page.md"), HasSubstr("](figures/sliding-by-length.svg)\n"));
  EXPECT_TRUE(fs::exists(folder_ / "to/figures/sliding-by-length.svg"));
}

TEST_F(Report, SaysWhatItExpected) {
  EXPECT_THAT(
      report({"--part", "none"}).err,
      HasSubstr("report: --part: expected one of answer sliding-by-length tables compared"));
  EXPECT_THAT(report({"--methods", "xpos"}).err,
              HasSubstr("report: --methods: expected some of t5 rope, but got xpos"));
  write_text(file_, "{\"method\": \"rope\"}");
  EXPECT_THAT(report({}).err, HasSubstr("expected \"arms\" of a survey"));
  write_text(file_, "{\"arms\": []}");
  EXPECT_THAT(report({}).err, AllOf(HasSubstr("found.json"), HasSubstr("sextant")));
  for (const char* record : {"{\"candidates\": {}}", "{\"mean_of_tasks\": {}}"}) {
    write_text(file_, record);
    for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
             {"other.json"}, {"--methods", "rope"}, {"--question", "why-10000"}}) {
      EXPECT_THAT(report(more).err,
                  HasSubstr("report: " + more[0] + ": expected only with surveys, but"));
    }
  }
  write_text(folder_ / "losses/manifest.json", "{\"measure\": \"losses\"}");
  const Ended unfinished = run({"report", (folder_ / "losses").string()});
  EXPECT_NE(unfinished.status, 0);
  EXPECT_THAT(unfinished.err, HasSubstr("expected results.json"));
  EXPECT_THAT(run({"report", folder_.path().string()}).err, HasSubstr("manifest.json"));
}

}  // namespace
}  // namespace sextant::cli
