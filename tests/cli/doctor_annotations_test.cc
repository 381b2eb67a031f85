// Reports of sextant doctor for continuous integration: GitHub's workflow commands, SARIF, and the
// line of the key that a finding is about. hooks_test.py runs the hooks themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/cli/doctor/report.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

DoctorReport report_with(const std::string& file, const ConfigFinding& finding) {
  DoctorReport report{
      .subject = file, .against = "a", .versions = {}, .rows = {}, .result = {}, .file = file};
  report.result.findings.push_back(finding);
  return report;
}

ConfigFinding finding(const std::string& field, const std::string& expected, const std::string& got,
                      const std::string& cause = "", bool warning = false) {
  return {{0, 1}, "", field, expected, got, cause, warning};
}

TEST(GithubText, EscapesPropertiesAndMessages) {
  const std::string text =
      github_text({report_with("a,b:c%.json", finding("window", "50%", "x\r\n::error::y", "z"))});
  EXPECT_EQ(text,
            "::error file=a%2Cb%3Ac%25.json,title=sextant doctor%3A window%2C layers 0-1::"
            "expected: 50%25%0Agot: x%0D%0A::error::y%0Acause: z\n"
            "sextant doctor: reports 1, errors 1, warnings 0, not judged 0\n");
}

TEST(GithubText, HasItsLevelsAndNeedsNoFile) {
  DoctorReport report = report_with("", finding("chunk", "a", "b", "", true));
  add_unjudged(report.result, "mask", "no mask", 3);
  EXPECT_EQ(github_text({report}),
            "::warning title=sextant doctor%3A chunk%2C layers 0-1::expected: a%0Agot: b\n"
            "::error title=sextant doctor%3A not judged::mask, layers 3: no mask\n"
            "sextant doctor: reports 1, errors 0, warnings 1, not judged 1\n");
}

TEST(Sarif, HasRulesResultsAndPlaces) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "a b.json").string();
  std::ofstream(file) << "{\n \"sliding_window\": 8\n}";
  DoctorReport report = report_with(file, finding("window", "4 keys", "8 keys"));
  report.result.findings.push_back(finding("attention factor", "1", "2", "", true));
  report.result.findings.push_back(finding("window", "4 keys", "9 keys"));
  add_unjudged(report.result, "model", "why", {});
  const json log = json::parse(sarif_text({report}, 1));
  EXPECT_EQ(log["version"], "2.1.0");
  ASSERT_EQ(log["runs"].size(), 1);
  const json run = log["runs"][0];
  std::vector<std::string> ids;
  for (const json& rule : run["tool"]["driver"]["rules"]) {
    ids.push_back(rule["id"]);
    for (const char* text : {"shortDescription", "fullDescription", "help"}) {
      EXPECT_FALSE(rule[text]["text"].get<std::string>().empty());
    }
  }
  EXPECT_EQ(ids, (std::vector<std::string>{"window", "attention-factor", "not-judged"}));
  ASSERT_EQ(run["results"].size(), 4);
  const std::vector<std::string> levels = {"error", "warning", "error", "none"};
  for (size_t n = 0; n < 4; ++n) {
    const json& result = run["results"][n];
    EXPECT_EQ(result["level"], levels[n]);
    EXPECT_EQ(result["ruleId"], ids[result["ruleIndex"].get<size_t>()]);
    const json& place = result["locations"][0]["physicalLocation"];
    EXPECT_THAT(place["artifactLocation"]["uri"].get<std::string>(), HasSubstr("a%20b.json"));
  }
  EXPECT_EQ(run["results"][3]["kind"], "open");
  const json& place = run["results"][0]["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "file://" + folder.path().string() + "/a%20b.json");
  EXPECT_EQ(place["region"]["startLine"], 2);
  EXPECT_EQ(run["invocations"][0]["executionSuccessful"], true);
  EXPECT_EQ(json::parse(sarif_text({}, 2))["runs"][0]["invocations"][0]["exitCode"], 2);
}

TEST(Sarif, AFileOfTheRepositoryIsRelativeToIt) {
  const json log = json::parse(sarif_text({report_with("./x/y.gguf", finding("a", "", ""))}, 1));
  const json place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"], json({{"uri", "x/y.gguf"}, {"uriBaseId", "%SRCROOT%"}}));
  EXPECT_FALSE(place.contains("region"));
}

constexpr const char* kConfig = R"({
  "model_type": "x", "quote\"d": "rope_theta: {",
  "vision_config": {"rope_theta": 1},
  "text_config": {
    "rope_theta": 2,
    "rope_scaling": {"rope_type": "yarn",
      "factor": 4,
      "type": "a"},
    "layers": [{"a_b": 1},
      {"c_d": 1}]
  },
  "rope_parameters": {"full": {
    "factor": 2},
    "sliding": {
    "rope_theta": 3}},
  "num_hidden_layers": 2
})";

int64_t line(const std::string& got, const std::string& place = "text_config",
             const std::string& field = "configuration", const std::string& cause = "") {
  return line_of(finding(field, "something", got, cause), kConfig, place);
}

TEST(LineOf, TheKeyThatAMessageNames) {
  EXPECT_EQ(line("rope_scaling: factor: expected a number, but got \"type\""), 7);
  EXPECT_EQ(line("rope_scaling: type: expected another"), 8);
  EXPECT_EQ(line("rope_scaling has the factor"), 6);  // only the next word leads inside
  EXPECT_EQ(line("rope_parameters.sliding.rope_theta is new"), 15);
  EXPECT_EQ(line("the factor of a type"), 0);  // words of English
  EXPECT_EQ(line("num_hidden_layers"), 16);
  EXPECT_EQ(line("c_d is there"), 10);
}

TEST(LineOf, TheLanguageModelsKeyIsBeforeOthers) {
  EXPECT_EQ(line("rope_theta"), 5);
  EXPECT_EQ(line("rope_theta", "vision_config"), 3);
  EXPECT_EQ(line("rope_theta", ""), 3);
  EXPECT_EQ(line("text_config.rope_theta", ""), 5);
}

TEST(LineOf, TheKeyThatDecidesAField) {
  EXPECT_EQ(line("0.5", "text_config", "frequencies"), 6);
  EXPECT_EQ(line("0.5", "text_config", "frequencies", "the base is 2 and 3"), 5);
  EXPECT_EQ(line("0.5", "text_config", "pairing"), 0);
}

TEST(LineOf, DamagedTextAndFlags) {
  const ConfigFinding damaged =
      finding("configuration", "", "\"b\": expected JSON, but could not read it at byte 12");
  EXPECT_EQ(line_of(damaged, "{\"a\": 1,\n\"b\": }", ""), 2);
  EXPECT_EQ(line_of(damaged, "{\n", ""), 2);
  EXPECT_EQ(line_of(damaged, "", ""), 1);
  const ConfigFinding flag = finding("configuration", "", "-c: --rope-scale: expected a number");
  EXPECT_EQ(line_of(flag, "llama-server\n  --rope-scaling yarn\n --rope-scale x", ""), 3);
  EXPECT_EQ(line_of(flag, "serve", ""), 0);
  std::string deep;
  for (int n = 0; n < 100'000; ++n) deep += "{\"a_b\":";
  EXPECT_EQ(line_of(finding("configuration", "", "a_b"), deep, ""), 1);
  EXPECT_EQ(line_of(finding("configuration", "", "a_b"), "{\"unfinished", ""), 0);
  EXPECT_EQ(line_of(finding("configuration", "", "a_b"), "{}}}\"a_b\":1", ""), 1);
}

}  // namespace
}  // namespace sextant::cli
