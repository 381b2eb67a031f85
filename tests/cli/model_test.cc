#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cli/small_model.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(Model, IsTrainedIntoAFolderThatIsEvaluatedAndExtended) {
  const Ended trained = train("model");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out,
              AllOf(HasSubstr("trained on texts of 32 bytes for 300 steps"),
                    HasSubstr("transformers loads it as LlamaForCausalLM"),
                    HasSubstr("sextant extend " + path("model") + " --length 256 --text " +
                              path("text") + " --share 0.2\n")));
  for (const char* file : {"config.json", "model.safetensors", "tokenizer.json"}) {
    EXPECT_TRUE(fs::exists(folder_ / "model" / file)) << file;
  }
  const Ended again = train("model");
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(again.out, trained.out);

  const Ended evaluated = run({"evaluate", path("model"), "--lengths", "32,64,128", "--text",
                               path("text"), "--share", "0.2", "--json", "--out", path("plots")});
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  const json found = json::parse(evaluated.out);
  EXPECT_EQ(found.at("train_length"), 32);
  EXPECT_EQ(found.at("stride"), 16);
  ASSERT_EQ(found.at("lengths").size(), 3);
  EXPECT_LT(found.at("lengths")[0].at("loss").at("mean").get<double>(), 3.5);  // chance: 5.5
  EXPECT_TRUE(fs::exists(folder_ / "plots/loss-by-length.svg"));

  const Ended extended = run({"extend", path("model"), "--length", "128", "--text", path("text"),
                              "--share", "0.2", "--write", path("longer"), "--json"});
  ASSERT_EQ(extended.status, 0) << extended.err;
  const json candidates = json::parse(extended.out);
  EXPECT_GE(candidates.at("candidates").size(), 19);
  EXPECT_THAT(candidates.at("reason").get<std::string>(),
              HasSubstr(candidates.at("recommended").get<std::string>()));
  // The written model gives the losses that were measured.
  const Ended longer = run({"evaluate", path("longer"), "--lengths", "32,64,128", "--text",
                            path("text"), "--share", "0.2", "--json"});
  ASSERT_EQ(longer.status, 0) << longer.err;
  size_t written = 0;
  for (const json& candidate : candidates.at("candidates")) {
    if (candidate.at("name") != candidates.at("recommended_hugging_face")) continue;
    ++written;
    EXPECT_NEAR(candidate.at("lengths")[2].at("sliding").at("mean").get<double>(),
                json::parse(longer.out).at("lengths")[2].at("sliding").at("mean").get<double>(),
                1e-4);
  }
  EXPECT_EQ(written, 1);
  // The error comes before the text is read, which does not exist.
  const Ended unknown = run({"extend", path("model"), "--length", "128", "--text", path("none"),
                             "--write", path("other"), "--choose", "yam"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err,
              AllOf(HasSubstr("--choose: expected one of direct pi"), HasSubstr("but got yam")));
  EXPECT_FALSE(fs::exists(folder_ / "other"));
  // The first candidate is the unchanged model.
  EXPECT_THAT(run({"extend", path("model"), "--length", "64", "--text", path("text")}).out,
              AllOf(HasSubstr("\ndirect "), HasSubstr("\nyarn "), HasSubstr("Recommended: ")));
}

TEST_F(Model, SaysNextOnlyWhatAShellCanReadAndTheTextHeldOutIsLongEnoughFor) {
  write_plan({{"training", {{"length", 256}}}});  // documents have 2000 bytes: none reaches 8 L
  const Ended trained = train("a model");
  ASSERT_EQ(trained.status, 0) << trained.err;
  // Without `+`, for which g++ 12 warns of an overlap that cannot occur (-Wrestrict).
  const std::string model = std::string("'").append(path("a model")).append("'"),
                    text = " --text " + path("text");
  EXPECT_THAT(trained.out,
              AllOf(HasSubstr("sextant evaluate " + model + " --lengths 256,512,1024" + text),
                    HasSubstr("sextant extend " + model + " --length 1024" + text)));
  write_plan({{"training", {{"length", 1024}}}, {"test", {{"blocks", 2}}}});
  const Ended longest = train("long");
  ASSERT_EQ(longest.status, 0) << longest.err;
  EXPECT_THAT(longest.out,
              AllOf(HasSubstr("has no 2 pieces of 2048 bytes"), Not(HasSubstr("sextant extend"))));
}

TEST_F(Model, OfTrainedFrequenciesIsNotExtended) {
  write_plan({{"options", {{"train", true}}}});
  const Ended trained = train("model");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out, AllOf(HasSubstr("sextant evaluate "), Not(HasSubstr("sextant extend"))));
  const Ended extended = run({"extend", path("model"), "--length", "64", "--text", path("text")});
  EXPECT_EQ(extended.status, 1);
  EXPECT_THAT(extended.err, HasSubstr("extend: options: train: expected false"));
}

TEST_F(Model, WithNoWordsInConfigJsonNeedsAChoiceToBeWritten) {
  write_plan({{"options", {{"dim", 8}}}});
  ASSERT_EQ(train("model").status, 0);
  const Ended extended =
      run({"extend", path("model"), "--length", "64", "--text", path("text"), "--blocks", "2"});
  EXPECT_EQ(extended.status, 0) << extended.err;
  EXPECT_THAT(extended.out, AllOf(HasSubstr("has words for none of them.\n"),
                                  HasSubstr("\n--write DIR needs --choose NAME here.\n")));
}

TEST_F(Model, KilledAndStartedAgainHasTheSameWeights) {
  ASSERT_EQ(train("whole").status, 0);
  Running running(train_words("killed", {"--save-seconds", "0"}), folder_.path());
  const fs::path arm = folder_ / "killed/training/arms/model-0";
  const auto saved = [&] {
    if (!fs::exists(arm)) return false;
    for (const auto& entry : fs::directory_iterator(arm)) {
      if (entry.path().filename().string() > "checkpoint-00000010.sxt" &&
          entry.path().extension() == ".sxt") {
        return true;
      }
    }
    return false;
  };
  while (!running.is_over() && !saved()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ASSERT_FALSE(running.is_over()) << running.err();
  ::kill(running.process(), SIGKILL);
  running.wait();
  EXPECT_FALSE(fs::exists(folder_ / "killed/config.json"));
  const Ended finished = train("killed");
  ASSERT_EQ(finished.status, 0) << finished.err;
  for (const char* file : {"model.safetensors", "config.json"}) {
    EXPECT_EQ(read_text(folder_ / "killed" / file), read_text(folder_ / "whole" / file)) << file;
  }
}

TEST_F(Model, InterruptedSaysHowToGoOn) {
  Running running(train_words("stopped", {"--save-seconds", "0"}), folder_.path());
  const fs::path arm = folder_ / "stopped/training/arms/model-0";
  while (!running.is_over() && !fs::exists(arm / "checkpoint-00000003.sxt"))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(-running.process(), SIGHUP);  // to the whole group, as a terminal that is closed does
  EXPECT_EQ(running.wait(), 128 + SIGHUP) << running.err();
  EXPECT_THAT(running.err(),
              AllOf(HasSubstr("To go on:\n  " SEXTANT_COMMAND " train "), HasSubstr("--out")));
  EXPECT_EQ(train("stopped").status, 0);
}

TEST_F(Model, AMethodThatTransformersHasNotIsSaidToBeSo) {
  write_plan({{"method", "t5"}});
  const Ended trained = train("model");
  ASSERT_EQ(trained.status, 0) << trained.err;
  EXPECT_THAT(trained.out,
              AllOf(HasSubstr("Sextant's own form"), HasSubstr("t5 has no architecture there")));
  EXPECT_EQ(run({"evaluate", path("model"), "--lengths", "32,64", "--text", path("text")}).status,
            0);
  const Ended extended = run({"extend", path("model"), "--length", "64", "--text", path("text")});
  EXPECT_EQ(extended.status, 1);
  EXPECT_THAT(extended.err, HasSubstr("method: expected rope"));
}

TEST_F(Model, WhatIsWrongInAPlanIsNamed) {
  const auto expect = [&](const json& more, const std::string& words) {
    write_plan(more);
    const Ended ended = train("model");
    EXPECT_EQ(ended.status, 1) << words;
    EXPECT_THAT(ended.err, HasSubstr(words));
  };
  expect({{"optimizer", "sgd"}}, "plan.json: optimizer: expected one of");
  expect({{"training", {{"steps", 3}}}}, "plan.json: training: steps: expected one of");
  expect({{"training", {{"length", "long"}}}}, "length: expected an integer, but got \"long\"");
  expect({{"model", {{"heads", 5}}}}, "width: expected a multiple of heads (5)");
  expect({{"options", {{"bass", 3}}}}, "bass");
  expect({{"method", "rotary"}}, "rotary");
  expect({{"method", "complex"}, {"options", {{"phase", "word"}, {"vocabulary", 64}}}},
         "complex: vocabulary: expected at least the model's 256, but got 64");
  expect({{"text", {"/nowhere/at/all"}}}, "/nowhere/at/all");
  write_text(folder_ / "plan.json", "{\"seed\": ");
  EXPECT_THAT(train("model").err, HasSubstr("plan.json: \"seed\": expected JSON"));
  EXPECT_EQ(run({"train", "--out", path("model")}).status, 2);
}

TEST_F(Model, ADeviceThatIsNotThereIsNamed) {
  ::setenv("CUDA_VISIBLE_DEVICES", "", /*overwrite=*/1);  // as on a machine without a GPU
  EXPECT_THAT(train("model", {"--device", "mps"}).err,
              HasSubstr("device: expected cpu or cuda, but got mps"));
  EXPECT_THAT(train("model", {"--device", "cuda"}).err, HasSubstr("device: expected cpu, as "));
  const Ended grouped = run(train_words("model", {"--device", "cuda"}), [] {
    for (const auto& [name, value] :
         {std::pair("WORLD_SIZE", "2"), {"RANK", "0"}, {"MASTER_ADDR", "127.0.0.1"}})
      ::setenv(name, value, /*overwrite=*/1);
  });
  EXPECT_THAT(grouped.err,
              HasSubstr("training: device: expected cpu for 2 processes, but got cuda"));
  write_plan({{"device", "cuda:1"}});
  EXPECT_THAT(train("model").err, HasSubstr("but got cuda:1"));
  ASSERT_EQ(train("model", {"--device", "cpu"}).status, 0);
  const Ended tested = run(
      {"evaluate", path("model"), "--lengths", "32", "--text", path("text"), "--device", "cuda"});
  EXPECT_EQ(tested.status, 1);
  EXPECT_THAT(tested.err, HasSubstr("device: expected cpu, as "));
}

TEST_F(Model, OtherSettingsInTheSameFolderAreRefused) {
  ASSERT_EQ(train("model").status, 0);
  write_plan({{"training", {{"learning_rate", 0.001}}}});
  const Ended other = train("model");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, AllOf(HasSubstr("holds a training with other settings"),
                               HasSubstr("settings.training.learning_rate: 0.004 there, 0.001")));
}

TEST_F(Model, WhatCannotBeEvaluatedIsNamed) {
  const auto error = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "evaluate");
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 1);
    return ended.err;
  };
  EXPECT_THAT(error({path("nowhere"), "--lengths", "32", "--text", path("text")}),
              HasSubstr("expected a folder with config.json"));
  ASSERT_EQ(train("model").status, 0);
  EXPECT_THAT(error({path("model"), "--lengths", "32,48", "--text", path("text")}),
              HasSubstr("lengths: expected divisors of the longest, 48"));
  EXPECT_THAT(error({path("model"), "--lengths", "32", "--text", path("none.txt")}),
              HasSubstr("none.txt"));
  EXPECT_THAT(error({path("model"), "--lengths", "32", "--stride", "40", "--text", path("text")}),
              HasSubstr("stride: expected 1 to the shortest length, 32"));
  json config = json::parse(read_text(folder_ / "model/config.json"));
  config["intermediate_size"] = 300;
  write_text(folder_ / "model/config.json", config.dump());
  EXPECT_THAT(error({path("model"), "--lengths", "32", "--text", path("text")}),
              HasSubstr("mlp.gate_proj.weight: expected [300, 32], but got ["));
}

TEST_F(Model, IsEvaluatedWithoutSomeChannelsOfItsPositions) {
  write_plan({{"method", "sinusoidal"}});
  ASSERT_EQ(train("model").status, 0);
  const auto evaluated = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"evaluate", path("model"), "--lengths", "32,64", "--text",
                               path("text"), "--share", "0.2", "--json"});
    const Ended ended = run(more);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return json::parse(ended.out);
  };
  const auto loss = [](const json& found) {
    return found.at("lengths")[0].at("loss").at("mean").get<double>();
  };
  const json whole = evaluated({}), dropped = evaluated({"--drop-channels", "16"});
  EXPECT_FALSE(whole.contains("drop_channels"));
  EXPECT_EQ(dropped.at("drop_channels"), 16);
  EXPECT_GT(loss(dropped), loss(whole));
  EXPECT_NE(loss(evaluated({"--drop-channels", "16", "--drop-seed", "1"})), loss(dropped));
  const Ended many = run({"evaluate", path("model"), "--lengths", "32", "--text", path("text"),
                          "--drop-channels", "33"});
  EXPECT_EQ(many.status, 1);
  EXPECT_THAT(many.err, HasSubstr("drop_channels: expected 1 to 32, the channels to which"));
  EXPECT_EQ(run({"evaluate", path("model"), "--lengths", "32", "--drop-seed", "1"}).status, 2);
}

TEST_F(Model, TheExampleIsAPlan) {
  const Ended example = run({"train", "--example"});
  EXPECT_EQ(example.status, 0);
  const json plan = json::parse(example.out);
  EXPECT_EQ(plan.at("method"), "rope");
  EXPECT_TRUE(plan.at("model").contains("norm_epsilon"));
}

}  // namespace
}  // namespace sextant::cli
