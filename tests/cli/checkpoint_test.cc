// sextant evaluate and extend of checkpoints: refusals before Python starts, and runs with a
// stand-in for the worker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/cli/small_text.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Answers `-c` with success. As the worker, it gives each token 2 nats, of the unchanged model 3
// beyond 512 positions, and of pi 2.5 everywhere; block b adds b / 10. With the file `stops`, it
// stops after the first arm.
constexpr const char* kStandIn = R"(#!/usr/bin/env python3
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
with open(here / "calls.txt", "a") as calls:
    print(*sys.argv[1:], file=calls)
if sys.argv[1] == "-c":
    sys.exit(0)
if (here / "fails").exists():
    os.write(3, b"! tensors: expected finite numbers\n")
    sys.exit(1)
for folder in map(pathlib.Path, sys.argv[5:]):
    arm = json.loads((folder / "arm.json").read_text())
    assert (folder / arm["text"]).exists() and arm["ends"]
    asked, name, lines = arm["losses"], arm["candidate"]["name"], []
    for block in range(asked["blocks"]):
        for length in asked["lengths"]:
            def loss(at):
                far = 1 if name == "direct" and at >= 512 else 0.5 if name == "pi" else 0
                return 2 + far + block / 10
            nats = [loss(at) for at in range(length)]
            bins = [sum(nats[n:n + asked["bin"]]) for n in range(0, length, asked["bin"])]
            last = asked["stride"]
            lines.append(json.dumps({
                "block": block, "length": length, "nats": bins,
                "tokens": [asked["bin"]] * len(bins), "bytes": [4 * asked["bin"]] * len(bins),
                "seconds": 1.5, "last": [sum(nats[-last:]), last, 4 * last]}))
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "done.json").write_text('{"weights": 1234}')
    os.write(3, b"1 2 " + name.encode() + b"\n")
    if (here / "stops").exists():
        sys.exit(75)
)";

class Checkpoints : public ::testing::Test {
 protected:
  Checkpoints() {
    write_text(folder_ / "python", kStandIn);
    fs::permissions(folder_ / "python", fs::perms::owner_all);
    write_small_text(folder_ / "text");
    write_model({});
  }

  void write_model(const json& more) const {
    json config = {{"model_type", "llama"},
                   {"architectures", {"LlamaForCausalLM"}},
                   {"hidden_size", 256},
                   {"num_attention_heads", 4},
                   {"num_hidden_layers", 2},
                   {"vocab_size", 1000},
                   {"max_position_embeddings", 512},
                   {"rope_theta", 10000.0}};
    if (!more.is_null()) config.merge_patch(more);
    write_text(folder_ / "model/config.json", config.dump());
    write_text(folder_ / "model/tokenizer.json", "{}");
    write_text(folder_ / "model/model.safetensors", "weights");
  }

  Ended with_stand_in(const std::vector<std::string>& words) const {
    return run(words, [&] { ::setenv("SEXTANT_PYTHON", path("python").c_str(), 1); });
  }
  Ended extend(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"extend", path("model"), "--length", "1024", "--text", path("text"),
                               "--blocks", "3", "--out", path("out")});
    return with_stand_in(more);
  }
  void expect_refused(const Ended& ended, const std::string& reason) const {
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.err, HasSubstr(reason));
    EXPECT_FALSE(fs::exists(folder_ / "calls.txt")) << "Python was started";
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
};

TEST_F(Checkpoints, AreExtendedAndTheWinnerIsSaidToEngines) {
  const Ended ended = extend();
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("Nats per token on the last 512 tokens of each block"),
                               HasSubstr("Recommended: ntk"), HasSubstr("(-1.000 ± 0.000, 95 %)"),
                               HasSubstr("a token has 4.000 bytes")));
  EXPECT_THAT(ended.out, AllOf(HasSubstr("transformers"), HasSubstr("--rope-freq-base"),
                               HasSubstr("--max-model-len")));
  const json config = json::parse(read_text(folder_ / "out/words/config.json"));
  EXPECT_EQ(config.at("max_position_embeddings"), 1024);
  EXPECT_NEAR(config.at("rope_theta").get<double>(), 20452, 1);  // 10000 * 2^(64/62)
  for (const char* file : {"extend.svg", "loss-by-position.svg", "loss-by-position.csv"}) {
    EXPECT_TRUE(fs::exists(folder_ / "out" / file)) << file;
  }
  EXPECT_THAT(run({"report", path("out"), "--markdown", "--part", "losses"}).out,
              HasSubstr("in nats per token on the last 512 tokens"));
  // A finished measurement is printed without a worker.
  fs::remove(folder_ / "calls.txt");
  EXPECT_EQ(extend().out, ended.out);
  EXPECT_FALSE(fs::exists(folder_ / "calls.txt"));
}

TEST_F(Checkpoints, AnEngineIsToldTheBestCandidateThatItHasWordsFor) {
  const Ended ended = extend({"--candidates", "dynamic", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json words = json::parse(ended.out).at("words");
  EXPECT_EQ(words.at("hugging_face").at("candidate"), "dynamic");
  EXPECT_EQ(words.at("vllm").at("candidate"), "direct");
  EXPECT_EQ(words.at("llama_cpp").at("candidate"), "direct");
}

TEST_F(Checkpoints, WriteTheFolderWithAnotherConfiguration) {
  const Ended ended = extend(
      {"--candidates", "yarn,rerope", "--write", path("longer"), "--choose", "yarn", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json found = json::parse(ended.out);
  EXPECT_EQ(found.at("candidates").size(), 3);  // with the unchanged model
  EXPECT_EQ(found.at("unit"), "nats per token");
  EXPECT_EQ(found.at("bytes_per_token"), 4.0);
  EXPECT_EQ(found.at("candidates")[0].at("by_position").at("loss").size(), 4);
  EXPECT_EQ(found.at("candidates")[0].at("seconds"), 9.0);  // 3 blocks at 2 lengths
  const json vllm = found.at("words").at("vllm");
  EXPECT_EQ(vllm.at("candidate"), "yarn");
  EXPECT_THAT(vllm.at("words").get<std::string>(), HasSubstr("yarn"));
  const json config = json::parse(read_text(folder_ / "longer/config.json"));
  EXPECT_EQ(config.at("rope_scaling").at("rope_type"), "yarn");
  EXPECT_EQ(config.at("rope_scaling").at("factor"), 2.0);
  EXPECT_EQ(read_text(folder_ / "longer/model.safetensors"), "weights");
  const Ended none = extend({"--write", path("other"), "--choose", "rerope"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("--choose: expected a candidate that config.json can express"));
}

TEST_F(Checkpoints, StoppedOrFailedWorkIsKept) {
  write_text(folder_ / "stops", "");
  const Ended stopped = extend();
  EXPECT_EQ(stopped.status, 130);
  EXPECT_THAT(stopped.err, HasSubstr("the same command goes on"));
  fs::remove(folder_ / "stops");
  write_text(folder_ / "fails", "");
  const Ended failed = extend();
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.err, HasSubstr("extend: tensors: expected finite numbers"));
  fs::remove(folder_ / "fails");
  fs::remove(folder_ / "calls.txt");
  ASSERT_EQ(extend().status, 0);
  EXPECT_THAT(read_text(folder_ / "calls.txt"),
              AllOf(HasSubstr("arms/pi"), Not(HasSubstr("arms/direct"))));
  const Ended other = extend({"--stride", "100"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("holds a measurement with other settings"),
                               HasSubstr("stride: 512 there, 100 asked for")));
}

TEST_F(Checkpoints, AreEvaluated) {
  const Ended ended =
      with_stand_in({"evaluate", path("model"), "--lengths", "256,512,768", "--text", path("text"),
                     "--blocks", "2", "--out", path("out"), "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json found = json::parse(ended.out);
  EXPECT_EQ(found.at("train_length"), 512);
  EXPECT_EQ(found.at("reference"), 512);
  EXPECT_EQ(found.at("weights"), 1234);
  EXPECT_EQ(found.at("bytes_per_token"), 4.0);
  EXPECT_EQ(found.at("stride"), 128);
  EXPECT_NEAR(found.at("lengths")[2].at("sliding").at("mean").get<double>(), 3.05, 1e-9);
  EXPECT_TRUE(fs::exists(folder_ / "out/loss-by-length.svg"));
}

TEST_F(Checkpoints, ThatCannotBeMeasuredAreRefusedAtOnce) {
  write_model({{"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}});
  expect_refused(extend(), "extend: rope_scaling: expected none");
  write_model({{"architectures", {"LlamaModel"}}});
  expect_refused(extend(), "architectures: expected a causal language model");
  write_model({{"is_encoder_decoder", true}});
  expect_refused(extend(), "is_encoder_decoder: expected false");
  write_text(folder_ / "model/config.json", "{");
  expect_refused(extend(), path("model/config.json"));
  write_model({{"is_encoder_decoder", nullptr}});
  expect_refused(extend({"--candidates", "yam"}), "--candidates: expected all or some of direct");
  expect_refused(
      with_stand_in({"extend", path("model"), "--length", "512", "--text", path("text")}),
      "--length: expected more than the training length, 512, but got 512");
  expect_refused(with_stand_in({"evaluate", path("model"), "--lengths", "512,256", "--text",
                                path("text"), "--out", path("out")}),
                 "lengths: expected each above the one before");
  fs::remove(folder_ / "model/tokenizer.json");
  expect_refused(extend(), "expected a tokenizer.json");
  write_model({});
  write_text(folder_ / "model/model.safetensors.index.json",
             R"({"weight_map": {"a": "model-1.safetensors"}})");
  expect_refused(extend(), "lists model-1.safetensors, which is not there");
  expect_refused(with_stand_in({"evaluate", path("none"), "--lengths", "8", "--dtype", "float32"}),
                 "--dtype: expected a checkpoint");
}

}  // namespace
}  // namespace sextant::cli
