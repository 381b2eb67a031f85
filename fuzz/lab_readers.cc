#include "fuzz/lab_readers.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/files/json_fields.h"
#include "sextant/lab/plan/settings_file.h"
#include "sextant/lab/report/model_report.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/report/retrieval_scores.h"
#include "sextant/lab/report/survey_record.h"
#include "sextant/lab/result/block_losses.h"
#include "sextant/lab/result/result.h"

namespace sextant::fuzz {
namespace {

using nlohmann::json;

// Does what `sextant survey --arms` does with a file, as far as the methods are not looked up.
void read_arms(const json& content) {
  const lab::ArmsFile file = lab::arms_file_of(content, "arms");
  lab::laid_over({}, file.settings, "arms");
}

void read_toml(const std::string& text) { read_arms(lab::parse_toml(text, "arms.toml")); }
void read_json_arms(const std::string& text) { read_arms(checked_json(text, "arms.json")); }

std::vector<std::string> toml_arms() {
  return {
      "arms = [\"rope:base=1e6\", {label = \"far\", method = \"rope\"}]\n"
      "[settings]\ntraining.bytes = 4_096  # few\ntest = {bin = 8, share = 0.5}\n",
      "[[arms]]\nmethod = 't5'\noptions.buckets = 8\n[[arms]]\nmethod = \"\"\"ali\\u0062i\"\"\"\n"};
}

std::vector<std::string> json_arms() {
  return {R"({"arms": ["rope:base=1e6:stretch=yarn",
              {"label": "far", "method": "rope", "options": {"dim": 16}}],
              "settings": {"training": {"bytes": 4096}, "test": {"lengths": [128, 256]}}})"};
}

void read_result(const std::string& text) {
  const json written = checked_json(text, "result.json").get<lab::ArmResult>();
  written.get<lab::ArmResult>();
}

std::vector<std::string> results() {
  lab::ArmResult text{.arm = {.label = "rope", .method = "rope", .options = R"({"dim":16})"}};
  text.lengths = {{.length = 32, .loss = {2.5, 0.1}, .sliding_blocks = {2.25, 2.75}}};
  text.loss_at = {3, 2};
  text.attention = {{.length = 32, .layer = 0, .entropy = 1, .span = 2, .at_distance = {0.5, 0.5}}};
  text.positions = {.plain = 0.5, .heads = {{.layer = 0, .head = 1, .trained = 0.5}}};
  text.pictures.distances = {0, 1};
  text.pictures.scores = {{0.5, -1}};
  text.pictures.cell = 4;
  text.pictures.attention = {{0.5, 0.25}};
  text.train_loss = {5, 4};
  lab::ArmResult pairs{.arm = {.label = "t5", .method = "t5", .options = "{}"}};
  pairs.retrieval = {{.length = 16, .distance = 4, .accuracy = {0.75, 0.25}, .right = {1, 0}}};
  return {json(text).dump(), json(pairs).dump()};
}

void read_losses(const std::string& text) {
  lab::for_each_record(text, "records.jsonl", [](const JsonFields& fields) {
    lab::loss_record(fields, {512, 1024}, 8);
  });
}

std::vector<std::string> losses() {
  return {R"({"block": 0, "length": 512, "nats": [800.5, 700], "tokens": [256, 256], )"
          R"("bytes": [900, 950], "last": [350.25, 128, 470], "seconds": 1.25})"
          "\n"
          R"({"block": 7, "length": 1024, "nats": [1.5], "tokens": [1], "last": [1.5, 1, 4]})"
          "\n"};
}

void read_samples(const std::string& text) {
  std::vector<lab::RetrievalSample> samples;
  lab::for_each_record(text, "records.jsonl", [&](const JsonFields& fields) {
    samples.push_back(lab::retrieval_sample(fields));
  });
  lab::retrieval_scores(samples);
}

std::vector<std::string> samples() {
  return {R"({"task": "needle", "length": 512, "depth": 0.5, "sample": 0, "tokens": 500, )"
          R"("score": 1.0, "expected": ["7319"], "answer": "It is 7319."})"
          "\n"
          R"({"task": "variables", "length": 512, "depth": null, "sample": 1, "tokens": 490, )"
          R"("score": 0.5, "expected": ["A", "B"], "answer": "A"})"
          "\n"};
}

void read_survey(const std::string& text) {
  lab::report_page(lab::survey_of(checked_json(text, "results.json"), "results.json"));
}

// With the measures of arms, and with those of the summary alone.
std::vector<std::string> surveys() {
  lab::Settings settings;
  settings.training.length = 32;
  settings.test.lengths = {32, 64};
  settings.retrieval.length = 16;
  settings.retrieval.lengths = {16, 32};
  std::vector<lab::ArmResult> arms;
  for (const char* method : {"rope", "t5"}) {
    lab::ArmResult& text = arms.emplace_back();
    text.arm = {.label = method, .method = method, .options = "{}"};
    for (const int64_t length : settings.test.lengths) {
      text.lengths.push_back({.length = length, .sliding = {1.5, 0.1}, .sliding_change = {0, 0}});
    }
    lab::ArmResult& pairs = arms.emplace_back();
    pairs.arm = {.label = method, .method = method, .options = "{}", .task = lab::Task::kPairs};
    pairs.retrieval = {{.length = 32, .distance = 30, .accuracy = {0.75, 0.1}}};
  }
  json content = lab::results_json({{"sextant", "0.2.0"}, {"settings", settings}, {"text", {}}},
                                   lab::findings_of(arms, settings));
  std::vector<std::string> all{content.dump()};
  for (json& arm : content["arms"]) arm = {{"arm", arm["arm"]}};
  all.push_back(content.dump());
  return all;
}

void read_extension(const std::string& text) {
  lab::extension_page(checked_json(text, "results.json"), "results.json");
}

std::vector<std::string> extensions() {
  lab::Extension found;
  found.model = {.train_length = 512, .blocks = 2, .stride = 8, .unit = "token"};
  for (const char* name : {"direct", "yarn"}) {
    lab::MeasuredCandidate& one = found.candidates.emplace_back();
    one.candidate.name = name;
    one.candidate.options = "{}";
    one.lengths = {{.length = 512, .sliding = {2.5, 0.1}}, {.length = 1024, .sliding = {3, 0.1}}};
    one.by_position = {.bin = 512, .loss = {{2.5, 0.1}, {3, 0.1}}};
  }
  json content = json::parse(lab::json_text(found, lab::recommend(found)));
  content["words"] = {{"vllm", {{"candidate", "yarn"}, {"words", "--max-model-len 1024"}}},
                      {"hugging_face", {{"candidate", "yarn"}, {"words", "{}"}}}};
  return {content.dump()};
}

constexpr Reader kReaders[] = {
    {"toml-arms", read_toml, toml_arms},       {"json-arms", read_json_arms, json_arms},
    {"result", read_result, results},          {"loss-records", read_losses, losses},
    {"samples", read_samples, samples},        {"survey", read_survey, surveys},
    {"extension", read_extension, extensions},
};

}  // namespace

std::span<const Reader> lab_readers() { return kReaders; }

}  // namespace sextant::fuzz
