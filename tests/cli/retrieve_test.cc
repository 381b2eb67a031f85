// sextant retrieve: refusals before Python starts, and runs with a stand-in for Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/command.h"

namespace sextant::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// `python -c ...` finds every package; `python -m sextant.measure FOLDER` answers two samples per
// task and length: the needle is found, and half of the common words.
constexpr const char* kStandInServer = R"(#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls.txt"
[ "$1" = -c ] && exit 0
[ "$2" = sextant.measure ] && [ "$3" = --progress-fd ] || exit 3
[ -f "$(dirname "$0")/fails" ] && { printf '! the \033[31mmodel is broken\r\n' >&3; exit 1; }
if [ -f "$(dirname "$0")/waits" ]; then
  trap 'exit 75' TERM
  touch "$(dirname "$0")/started"
  while :; do sleep 0.05; done
fi
shift 4
for folder; do
  length=${folder##*/}
  for sample in 0 1; do
    echo '{"task": "needle", "length": '$length', "depth": '$sample', "sample": '$sample',' \
      '"tokens": 500, "score": 1.0, "expected": ["42"], "answer": "42"}'
    echo '{"task": "common-words", "length": '$length', "depth": null, "sample": '$sample',' \
      '"tokens": 500, "score": 0.5, "expected": ["ash", "elm"], "answer": "ash"}'
  done > "$folder/records.jsonl"
  echo '{"transformers": "5.24.0"}' > "$folder/done.json"
done
echo "1000 1000 needle" >&3
)";

class Retrieve : public ::testing::Test {
 protected:
  Retrieve() {
    write_text(python_, kStandInServer);
    std::filesystem::permissions(python_, std::filesystem::perms::owner_all);
    write_model("LlamaForCausalLM");
  }

  void write_model(const std::string& architecture) const {
    const json config = {{"model_type", "llama"},
                         {"architectures", {architecture}},
                         {"hidden_size", 64},
                         {"num_attention_heads", 4},
                         {"num_hidden_layers", 2},
                         {"vocab_size", 1000},
                         {"max_position_embeddings", 512},
                         {"rope_theta", 10000.0}};
    write_text(model_ / "config.json", config.dump());
    write_text(model_ / "tokenizer.json", "{}");
    write_text(model_ / "model.safetensors", "weights");
  }

  Ended retrieve(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"retrieve"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, [&] { ::setenv("SEXTANT_PYTHON", python_.c_str(), 1); });
  }
  Ended measure(std::vector<std::string> more = {}) const {
    more.insert(more.begin(),
                {model_.string(), "--lengths", "512,1024", "--tasks", "needle,common-words",
                 "--samples", "2", "--depths", "2", "--out", out_.string()});
    return retrieve(more);
  }
  void expect_refused(const std::vector<std::string>& words, const std::string& reason) const {
    const auto start = std::chrono::steady_clock::now();
    const Ended ended = retrieve(words);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
    EXPECT_NE(ended.status, 0);
    EXPECT_THAT(ended.err, HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(calls_)) << "refused before Python starts";
  }

  const TemporaryFolder folder_;
  const std::filesystem::path python_ = folder_ / "python", calls_ = folder_ / "calls.txt",
                              model_ = folder_ / "small", out_ = folder_ / "out";
};

TEST_F(Retrieve, RefusesUnknownTasksAndLengths) {
  const std::string model = model_.string();
  expect_refused({model, "--tasks", "needle,haystack"},
                 "--tasks: expected some of needle, multi-key, multi-value, variables, "
                 "common-words, but got haystack");
  expect_refused({model, "--tasks", "needle,needle"}, "but got needle twice");
  expect_refused({model, "--lengths", "2048,1024"}, "--lengths: expected rising numbers");
  expect_refused({model, "--lengths", "128"}, "from 256, but got 128");
  expect_refused({model, "--samples", "1"}, "--samples");
  expect_refused({model, "--samples", "4", "--depths", "5"},
                 "--depths: expected at most the number of samples, 4, but got 5");
  expect_refused({model, "--dtype", "int4"}, "--dtype");
  expect_refused({model, "--method", "rope", "--options", "[4]"},
                 "--options: expected a JSON object, but got [4]");
  expect_refused({model, "--options", "{}"}, "--method");
  expect_refused({}, "MODEL or --endpoint");
}

TEST_F(Retrieve, RefusesOptionsThatAnEndpointDoesNotRead) {
  const std::string url = "http://127.0.0.1:1";
  expect_refused({"--endpoint", "127.0.0.1"}, "--endpoint: expected a URL");
  expect_refused({"--endpoint", url, "--method", "rope"}, "--method");
  expect_refused({"--endpoint", url, "--dtype", "float32"}, "--dtype");
  expect_refused({model_.string(), "--endpoint-model", "x"}, "--endpoint");
  std::filesystem::remove(model_ / "tokenizer.json");
  expect_refused({model_.string(), "--endpoint", url}, "tokenizer.json: expected a file");
}

TEST_F(Retrieve, RefusesModelsThatCannotBeLoaded) {
  expect_refused({(folder_ / "none").string()}, "none");
  std::filesystem::remove(model_ / "tokenizer.json");
  expect_refused({model_.string()}, "tokenizer.json");
  write_model("BertForMaskedLM");
  expect_refused({model_.string()}, "config.json");
  expect_refused({model_.string()}, "expected a causal language model");
  write_text(model_ / "config.json", "{\"model_type\": ");
  expect_refused({model_.string()}, "config.json");
  std::filesystem::remove(model_ / "config.json");
  expect_refused({model_.string()}, "config.json");
  write_text(folder_ / "broken.gguf", "GGUF");
  expect_refused({(folder_ / "broken.gguf").string()}, "gguf: version");
}

TEST_F(Retrieve, MeasuresReportsAndIsDone) {
  const Ended ended = measure();
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("needle          100.0"));
  EXPECT_THAT(ended.out, HasSubstr("common-words      50.0 [10, 90]"));
  EXPECT_THAT(ended.out, HasSubstr("Effective length: less than 512 tokens"));
  EXPECT_THAT(ended.out, HasSubstr((out_ / "report.html").string()));
  const std::string page = read_text(out_ / "report.html");
  EXPECT_THAT(page, HasSubstr("ash, elm"));
  EXPECT_EQ(run({"report", out_.string()}).status, 0);
  EXPECT_EQ(read_text(out_ / "report.html"), page) << "of results.json";
  const json arm = json::parse(read_text(out_ / "arms" / "512" / "arm.json"));
  EXPECT_EQ(arm["measure"], "retrieval");
  EXPECT_EQ(arm["model"], model_.string());
  EXPECT_EQ(arm["candidate"]["method"], nullptr);
  EXPECT_EQ(arm["retrieval"]["lengths"], json({512}));
  EXPECT_EQ(arm["retrieval"]["seed"], 0);
  EXPECT_EQ(arm["retrieval"]["chat"], false);
  EXPECT_GE(arm["threads"], 1);
  // Again: nothing is left to measure.
  std::filesystem::remove(calls_);
  const Ended again = measure({"--json"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(json::parse(again.out)["facts"]["transformers"], "5.24.0");
  EXPECT_EQ(json::parse(again.out)["settings"]["trained_length"], 512);
  EXPECT_FALSE(std::filesystem::exists(calls_));
  const Ended other = measure({"--seed", "1"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("other settings"));
}

TEST_F(Retrieve, HasNoMoreDepthsThanSamples) {
  const auto depths = [&](const char* samples) {
    const std::string out = folder_ / samples;
    EXPECT_EQ(retrieve({model_.string(), "--lengths", "512", "--samples", samples, "--out", out,
                        "--prepare"})
                  .status,
              0);
    return json::parse(read_text(out + "/arms/512/arm.json"))["retrieval"]["depths"];
  };
  EXPECT_EQ(depths("2"), 2);
  EXPECT_EQ(depths("5"), 5);
  EXPECT_EQ(depths("20"), 5);
}

TEST_F(Retrieve, SaysWhatTheWorkerNoted) {
  ASSERT_EQ(measure().status, 0);
  const auto with_facts = [&](const char* arm, const json& facts) {
    write_text(out_ / "arms" / arm / "done.json", facts.dump());
  };
  const json notes = {"texts begin with <s>"};
  with_facts("512", {{"notes", notes}, {"special_tokens", "no </s>"}});
  with_facts("1024", {{"notes", notes}, {"special_tokens", "no </s>"}});
  const Ended ended = measure();
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.err, "texts begin with <s>\n") << "once";
  with_facts("1024", json::object());
  const Ended mixed = measure();
  EXPECT_EQ(mixed.status, 1);
  EXPECT_THAT(mixed.err, HasSubstr("one rule for special tokens, but got no </s> and none"));
}

TEST_F(Retrieve, PassesTheMethodToPython) {
  const Ended ended = measure({"--method", "rope", "--options", R"({"stretch": "yarn*4"})"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json arm = json::parse(read_text(out_ / "arms" / "512" / "arm.json"));
  EXPECT_EQ(arm["candidate"]["method"], "rope");
  EXPECT_EQ(arm["candidate"]["options"]["stretch"], "yarn*4");
  EXPECT_THAT(read_text(out_ / "report.html"), HasSubstr("yarn*4"));
}

TEST_F(Retrieve, AsksAnEndpointWithoutAModel) {
  const Ended ended = retrieve({"--endpoint", "http://127.0.0.1:8080", "--endpoint-model", "q",
                                "--lengths", "512,1024", "--tasks", "needle,common-words",
                                "--samples", "2", "--out", out_.string()});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json arm = json::parse(read_text(out_ / "arms" / "512" / "arm.json"));
  EXPECT_EQ(arm["model"], nullptr);
  EXPECT_EQ(arm["endpoint"], json({{"url", "http://127.0.0.1:8080"}, {"model", "q"}}));
  EXPECT_THAT(read_text(out_ / "report.html"), HasSubstr("q at http://127.0.0.1:8080"));
}

TEST_F(Retrieve, SaysWhyTheWorkerFailed) {
  write_text(folder_ / "fails", "");
  const Ended ended = measure();
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, HasSubstr("retrieve: the \\u001b[31mmodel is broken"));
  EXPECT_THAT(ended.out, Not(HasSubstr("Effective length")));
}

TEST_F(Retrieve, PreparedLengthsAreCollected) {
  const Ended prepared = measure({"--prepare"});
  EXPECT_EQ(prepared.status, 0) << prepared.err;
  EXPECT_EQ(read_text(out_ / "arms.txt"), "arms/512\narms/1024\n");
  EXPECT_THAT(prepared.out, HasSubstr("sextant retrieve --collect"));
  const std::vector<std::string> words{"retrieve", "--collect", out_.string()};
  EXPECT_EQ(run(words).status, 75);
  const Ended threads = run({"arm", "--threads", "2", (out_ / "arms/512").string()});
  EXPECT_EQ(threads.status, 1);
  EXPECT_THAT(threads.err, HasSubstr("arm: --threads: expected an arm of a survey"));
  const Ended arms = run({"arm", (out_ / "arms/512").string(), (out_ / "arms/1024").string()},
                         [&] { ::setenv("SEXTANT_PYTHON", python_.c_str(), 1); });
  EXPECT_EQ(arms.status, 0) << arms.err;
  const Ended collected = run(words);
  EXPECT_EQ(collected.status, 0) << collected.err;
  EXPECT_THAT(collected.out, HasSubstr("common-words"));
}

TEST_F(Retrieve, CanBeInterruptedAndContinued) {
  write_text(folder_ / "waits", "");
  const TemporaryFolder output;
  Running running(
      {"retrieve", model_.string(), "--lengths", "512,1024", "--tasks", "needle,common-words",
       "--samples", "2", "--depths", "2", "--out", out_.string()},
      output.path(), [&] { ::setenv("SEXTANT_PYTHON", python_.c_str(), 1); });
  while (!running.is_over() && !std::filesystem::exists(folder_ / "started")) ::usleep(10000);
  ::kill(running.process(), SIGINT);
  EXPECT_EQ(running.wait(), 130);
  EXPECT_THAT(running.err(), HasSubstr("stopped; the same command goes on"));
  EXPECT_EQ(running.out(), "");
  std::filesystem::remove(folder_ / "waits");
  EXPECT_EQ(measure().status, 0);
}

}  // namespace
}  // namespace sextant::cli
