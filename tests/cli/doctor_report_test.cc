// The report of sextant doctor on a model that ran: findings are joined and sorted, and layers have
// their verdicts. tests/python/doctor has the findings in live models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/cli/doctor/report.h"

namespace sextant::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Layers = std::vector<int64_t>;

json config(double factor) {
  return {
      {"model_type", "llama"},
      {"hidden_size", 256},
      {"num_attention_heads", 4},
      {"num_hidden_layers", 3},
      {"rope_theta", 10000.0},
      {"max_position_embeddings", 32768},
      {"rope_scaling",
       {{"rope_type", "yarn"}, {"factor", factor}, {"original_max_position_embeddings", 8192}}}};
}

json examined(const json& configuration) {
  return {{"subject", "LlamaModel"},
          {"against", "model.config"},
          {"versions", json::array({json::array({"transformers", "5.24.0"})})},
          {"config", configuration.dump()},
          {"length", 4100},
          {"longest", 32768},
          {"layers", json::array({Layers{0, 1, 2}})},
          {"findings", json::array()},
          {"unjudged", json::array()},
          {"notes", {"noted"}}};
}

json finding(int64_t layer, const std::string& field, const std::string& got = "queries: 1") {
  return {{"layers", Layers{layer}}, {"kind", ""}, {"field", field},
          {"expected", "2"},         {"got", got}, {"cause", "a cause"}};
}

DoctorReport of(const json& model) { return report_of(model.dump(), "model.json"); }

TEST(DoctorReport, FactsSayWhatWasMeasured) {
  json model = examined(config(4));
  EXPECT_EQ(of(model).facts_text(), "");
  model["facts"] = {
      {{"fact", "mask"}, {"status", "as configured"}, {"layers", Layers{}}, {"why", ""}},
      {{"fact", "softcap"}, {"status", "not measured"}, {"layers", Layers{1}}, {"why", "flash"}},
      {{"fact", "cache"}, {"status", "as configured"}, {"layers", Layers{}}, {"why", ""}}};
  const DoctorReport report = of(model);
  EXPECT_EQ(report.verdict(), "sound");
  EXPECT_EQ(report.facts_text(), "mask, cache: as configured; softcap: not measured");
  EXPECT_EQ(json::parse(json_text(report))["facts"], model["facts"]);
}

TEST(DoctorReport, ASoundModelHasALineForItsGroup) {
  const DoctorReport report = of(examined(config(4)));
  EXPECT_EQ(report.verdict(), "sound") << json_text(report);
  EXPECT_EQ(report.exit_status(), 0);
  ASSERT_EQ(report.rows.size(), 1);
  EXPECT_EQ(report.rows[0].layers, (Layers{0, 1, 2}));
  EXPECT_EQ(report.rows[0].rotated, "0-63 of 64");
  EXPECT_EQ(report.rows[0].stretch, "YaRN x 4");
  EXPECT_NEAR(report.rows[0].scale, 0.1621, 1e-4);
  EXPECT_EQ(report.rows[0].verdict, "ok");
  EXPECT_EQ(report.result.notes, std::vector<std::string>{"noted"});
}

TEST(DoctorReport, EqualFindingsAreJoinedAndStandInTheOrderOfFields) {
  json model = examined(config(4));
  model["findings"] = {finding(2, "window"), finding(2, "frequencies"), finding(0, "frequencies"),
                       finding(1, "frequencies", "keys: 1"), finding(0, "frequencies")};
  const DoctorReport report = of(model);
  EXPECT_EQ(report.exit_status(), 1);
  const std::vector<ConfigFinding>& found = report.result.findings;
  ASSERT_EQ(found.size(), 3);
  EXPECT_EQ(found[0].layers, (Layers{0, 2}));
  EXPECT_EQ(found[1].got, "keys: 1");
  EXPECT_EQ(found[2].field, "window");
  ASSERT_EQ(report.rows.size(), 2);
  EXPECT_EQ(report.rows[0].verdict, "frequencies");
  EXPECT_EQ(report.rows[0].layers, (Layers{0, 1}));
  EXPECT_EQ(report.rows[1].verdict, "frequencies, window");
}

TEST(DoctorReport, WhatIsNotJudgedIsNoFinding) {
  json model = examined(config(4));
  for (const int64_t layer : {0, 2}) {
    model["unjudged"].push_back({{"layers", Layers{layer}}, {"what", "rotation"}, {"why", "w"}});
  }
  const DoctorReport report = of(model);
  EXPECT_EQ(report.verdict(), "cannot be judged");
  EXPECT_EQ(report.exit_status(), 2);
  ASSERT_EQ(report.result.unjudged.size(), 1);
  EXPECT_EQ(report.result.unjudged[0].layers, (Layers{0, 2}));
  ASSERT_EQ(report.rows.size(), 2);
  EXPECT_EQ(report.rows[0].verdict, "not judged");
  EXPECT_EQ(report.rows[1].verdict, "ok");
}

TEST(DoctorReport, TheStatusIsThatOfErrorsThenOfWhatIsNotJudged) {
  json model = examined(config(1.5));  // with a warning
  EXPECT_EQ(of(model).verdict(), "findings");
  EXPECT_EQ(of(model).exit_status(), 0);
  EXPECT_EQ(of(model).exit_status(true), 1);
  model["unjudged"].push_back({{"layers", Layers{0}}, {"what", "rotation"}, {"why", "w"}});
  EXPECT_EQ(of(model).exit_status(), 2);
  EXPECT_EQ(of(model).exit_status(true), 1);
  model["findings"] = {finding(0, "layers")};
  EXPECT_EQ(of(model).exit_status(), 1);
}

TEST(DoctorReport, ALengthBeyondTheStretchIsAWarningBehindErrors) {
  json model = examined(config(1.5));
  model["findings"] = {finding(0, "layers")};
  const DoctorReport report = of(model);
  ASSERT_EQ(report.result.findings.size(), 2);
  EXPECT_EQ(report.result.findings[0].field, "layers");
  EXPECT_TRUE(report.result.findings[1].warning);
  EXPECT_EQ(report.result.findings[1].got, "32768");
  EXPECT_THAT(report.result.findings[1].expected,
              HasSubstr("up to 12288, which YaRN with factor 1.5 reaches"));
  EXPECT_THAT(json_text(report), HasSubstr("\"severity\": \"warning\""));
}

// Three stretches reach only layers with a window or chunk.
TEST(DoctorReport, ReleasedModelsAreNotDoubtful) {
  std::vector<std::string> doubtful;
  const auto folder =
      std::filesystem::path(SEXTANT_SOURCE_DIR) / "tests" / "rope_config" / "released";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    const json released = json::parse(file).at("config");
    json inner = released;
    for (const char* name : {"llm_config", "text_config"}) {
      if (released.contains(name) && released[name].is_object()) inner = released[name];
    }
    json model = examined(released);
    model["longest"] = inner.value("max_position_embeddings", 0);
    model["length"] = 0;
    if (!of(model).result.findings.empty()) doubtful.push_back(entry.path().stem());
  }
  EXPECT_THAT(doubtful, ::testing::UnorderedElementsAre("exaone-4.0-32b", "exaone-4.5-33b",
                                                        "llama-4-scout-17b-16e"));
}

TEST(DoctorReport, OtherTextIsRefused) {
  json without = examined(config(4));
  without.erase("longest");
  const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
  const std::vector<std::pair<std::string, const char*>> refused = {
      {"{", "model.json: expected JSON, but could not read it at byte 1"},
      {"[]", "model.json: expected values of other types"},
      {without.dump(), "model.json: expected values of other types"},
      {deep, "model.json: expected"}};
  for (const auto& [text, error] : refused) {
    const auto read = [&text = text] { report_of(text, "model.json"); };
    EXPECT_THAT(read, ThrowsMessage<Error>(HasSubstr(error)));
  }
}

}  // namespace
}  // namespace sextant::cli
