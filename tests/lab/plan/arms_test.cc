#include "sextant/lab/plan/arms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Settings without the retrieval task.
Settings on_text() {
  Settings settings;
  settings.retrieval.steps = 0;
  return settings;
}

std::vector<std::string> names_of(const std::vector<Arm>& arms) {
  std::vector<std::string> names;
  for (const Arm& arm : arms) names.push_back(arm.name());
  return names;
}

TEST(Arms, ComeSeedBySeed) {
  EXPECT_THAT(names_of(make_arms({"rope", "alibi"}, 2, on_text())),
              ElementsAre("rope-0", "alibi-0", "rope-1", "alibi-1"));
}

TEST(Arms, HaveOneForPairsBesideTheOneForText) {
  const std::vector<Arm> arms = make_arms({"t5:memory=32", "window", "learned"}, 2, {});
  EXPECT_THAT(names_of(arms), ElementsAre("t5:memory=32-0", "rope-0", "window-0", "learned-0",
                                          "rope-pairs-0", "window-pairs-0", "learned-pairs-0",
                                          "t5:memory=32-1", "rope-1", "window-1", "learned-1",
                                          "rope-pairs-1", "window-pairs-1", "learned-pairs-1"));
  EXPECT_EQ(arms[5].weights_from, "rope-pairs-0");
  EXPECT_EQ(arms[5].task, Task::kPairs);
  EXPECT_EQ(json::parse(arms[3].options).at("rows"), 1024);
  EXPECT_EQ(json::parse(arms[6].options).at("rows"), 512) << "the longest text of pairs";
  EXPECT_EQ(json(json(arms[5]).get<Arm>()), json(arms[5]));
}

TEST(Arms, TakeLengthsAsMultiplesOfTheTrainingLength) {
  const auto window = [](const std::string& value, size_t arm) {
    return json::parse(make_arms({"rerope:window=" + value}, 1, {}).at(arm).options).at("window");
  };
  EXPECT_EQ(window("L", 1), 128);
  EXPECT_EQ(window("L", 3), 64) << "of pairs";
  EXPECT_EQ(window("L/4", 1), 32);
  EXPECT_EQ(window("3L/4", 1), 96);
  EXPECT_EQ(window("2L", 1), 256);
  EXPECT_EQ(make_arms({"t5:memory=L"}, 1, {}).front().memory, 128);
  for (const char* other : {"L/", "L/0", "L4", "-1L", "xL", "L/4L"}) {
    EXPECT_EQ(window(other, 1), other) << "a method will refuse it";
  }
}

TEST(Arms, StretchesReadATrainedRopeByTheFactorThatIsTested) {
  const std::vector<Arm> arms =
      make_arms({"ntk", "yarn-8-turns", "dynamic-ntk", "log-n", "yarn-paper"}, 1, {});
  ASSERT_EQ(arms.size(), 12);
  EXPECT_EQ(arms[0].name(), "rope-0");
  for (size_t n = 1; n < 6; ++n) {
    EXPECT_EQ(arms[n].weights_from, "rope-0");
    EXPECT_EQ(arms[n].method, "rope");
  }
  EXPECT_EQ(json::parse(arms[1].options),
            json::parse(R"({"stretch": {"rope_type": "ntk", "factor": 8.0}})"));
  EXPECT_EQ(json::parse(arms[2].options),
            json::parse(R"({"stretch": {"rope_type": "yarn", "factor": 8.0, "beta_fast": 8.0}})"));
  EXPECT_EQ(json::parse(arms[3].options),
            json::parse(R"({"stretch": {"rope_type": "dynamic-ntk"}})"));
  EXPECT_EQ(json::parse(arms[4].options), json::parse(R"({"query_scale": "logn"})"));
  EXPECT_EQ(json::parse(arms[5].options),
            json::parse(R"({"stretch": {"rope_type": "yarn", "factor": 8.0, "ramp": "turns"}})"));
  const Arm own = make_arms({"pi:weights=own:base=500"}, 1, on_text()).at(0);
  EXPECT_EQ(own.weights_from, "");
  EXPECT_EQ(json::parse(own.options).at("base"), 500);
}

TEST(Arms, AreTunedBesideThoseThatAreNot) {
  const std::vector<Arm> arms = make_arms({"t5", "ntk", "rope"}, 1, on_text(), {.tune = 60});
  EXPECT_THAT(names_of(arms),
              ElementsAre("t5-0", "rope-0", "ntk-0", "rope:tune=60-0", "ntk:tune=60-0"));
  for (const size_t n : {3, 4}) {
    EXPECT_EQ(arms[n].weights_from, "rope-0");
    EXPECT_TRUE(arms[n].trains());
    const TrainingOptions tuning = training_of(on_text(), arms[n]);
    EXPECT_EQ(tuning.length, 1024);
    EXPECT_EQ(tuning.batch, 1) << "as many bytes a step";
    EXPECT_EQ(tuning.steps(), 60);
    EXPECT_DOUBLE_EQ(tuning.learning_rate, 1e-3);
    EXPECT_EQ(json(json(arms[n]).get<Arm>()), json(arms[n]));
  }
  EXPECT_FALSE(arms[2].trains());
  EXPECT_EQ(arms[4].options, arms[2].options);
  EXPECT_EQ(make_arms({"ntk:tune=5"}, 1, on_text()).back().tune, 5);
  EXPECT_THAT([] { make_arms({"t5:tune=5"}, 1, on_text()); },
              ThrowsMessage<Error>(HasSubstr("tune: expected 0, as it has no weights of another")));
}

TEST(Arms, WithDroppedChannelsBringTheMethodWithAll) {
  const std::vector<Arm> arms =
      make_arms({"sinusoidal:base=100:drop_channels=4", "learned", "learned:drop_channels=1",
                 "window:of=binary:drop_channels=2"},
                1, on_text(), {.tune = 20});
  EXPECT_THAT(
      names_of(arms),
      ElementsAre("sinusoidal:base=100-0", "sinusoidal:base=100:drop_channels=4-0", "learned-0",
                  "learned:drop_channels=1-0", "binary-0", "window:of=binary:drop_channels=2-0"));
  EXPECT_EQ(arms[1].weights_from, "sinusoidal:base=100-0");
  EXPECT_EQ(arms[1].drop_channels, 4);
  EXPECT_EQ(json::parse(arms[1].options), json({{"base", 100}}));
  EXPECT_FALSE(arms[1].trains());
  EXPECT_EQ(arms[3].options, arms[2].options);
  EXPECT_EQ(arms[5].weights_from, "binary-0");
  EXPECT_EQ(json(json(arms[1]).get<Arm>()), json(arms[1]));
  EXPECT_FALSE(json(arms[0]).contains("drop_channels")) << "older results lack it";
  EXPECT_THAT([] { make_arms({"sinusoidal:drop_channels=4:tune=5"}, 1, on_text()); },
              ThrowsMessage<Error>(HasSubstr("tune: expected 0 with drop_channels")));
  EXPECT_THAT([] { make_arms({"sinusoidal:drop_channels=some"}, 1, on_text()); },
              ThrowsMessage<Error>(HasSubstr("drop_channels: expected 0 to")));
}

TEST(Arms, OfAFileWithDroppedChannelsReadTheWeightsOfTheirMethod) {
  const std::vector<ArmRequest> requests{
      {.label = "lost", .method = "sinusoidal", .options = R"({"base": 100, "drop_channels": 4})"}};
  EXPECT_THAT(names_of(make_arms(requests, 1, on_text())),
              ElementsAre("sinusoidal:base=100-0", "lost-0"));
  const std::vector<ArmRequest> nested{
      {.label = "lost",
       .method = "clock",
       .options = R"({"periods": [7, 49], "projected": true, "drop_channels": 4})"}};
  const std::vector<Arm> arms = make_arms(nested, 1, on_text());
  EXPECT_THAT(names_of(arms), ElementsAre("clock:periods=[7,49]:projected=true-0", "lost-0"));
  EXPECT_EQ(arms[0].options, arms[1].options);
}

TEST(Arms, LoseChannelsWhereTheyAddSome) {
  const std::vector<Arm> arms =
      make_arms({"rope", "binary", "sinusoidal:drop_channels=4", "pi"}, 1, on_text());
  const auto added = [](const Arm& arm) { return int64_t{arm.method == "rope" ? 0 : 16}; };
  const std::vector<int64_t> counts{1, 4};
  const std::vector<Arm> all = with_dropped_arms(arms, counts, added);
  EXPECT_THAT(names_of(all),
              ElementsAre("rope-0", "binary-0", "binary:drop_channels=1-0",
                          "binary:drop_channels=4-0", "sinusoidal-0",
                          "sinusoidal:drop_channels=1-0", "sinusoidal:drop_channels=4-0", "pi-0"));
  EXPECT_EQ(all[3].weights_from, "binary-0");
  EXPECT_EQ(all[3].drop_channels, 4);
  const std::vector<int64_t> none{0};
  EXPECT_THAT([&] { with_dropped_arms(arms, none, added); },
              ThrowsMessage<Error>(HasSubstr("drop_channels: expected at least 1, but got 0")));
}

TEST(Arms, KnowTheAlienClock) {
  const Arm arm = make_arms({"alien-clock:hands=3"}, 1, on_text()).at(0);
  EXPECT_EQ(arm.label, "alien-clock:hands=3");
  EXPECT_EQ(arm.method, "clock");
  EXPECT_EQ(arm.weights_from, "");
  EXPECT_EQ(json::parse(arm.options), json({{"system", "alien"}, {"hands", 3}}));
}

TEST(Arms, ReadTheWeightsOfAnyThatWasAskedFor) {
  const std::vector<ArmRequest> requests{
      {.label = "far", .method = "rope", .options = R"({"base": 1e6})"},
      {.label = "far, stretched",
       .method = "ntk",
       .options = R"({"weights": "far", "base": 1e6})"}};
  const std::vector<Arm> arms = make_arms(requests, 1, on_text());
  EXPECT_THAT(names_of(arms), ElementsAre("far-0", "far, stretched-0"));
  EXPECT_EQ(arms[1].weights_from, "far-0");
  EXPECT_EQ(arms[1].method, "rope");
}

TEST(Arms, OfASurveyThatNamesNoneAreKnown) {
  for (const std::string& name : stretches()) {
    const bool dynamic = name.starts_with("dynamic-");
    EXPECT_THAT(default_methods(Objective::kCausal),
                testing::Contains(name).Times(dynamic ? 0 : 1));
    EXPECT_EQ(make_arms({name}, 1, on_text()).back().weights_from, "rope-0") << name;
  }
}

TEST(Arms, TakeOptionsAsJsonOrWords) {
  const Arm arm = make_arms({"rope:base=1e6:dim=16:pairing=interleaved"}, 1, on_text()).at(0);
  EXPECT_EQ(arm.method, "rope");
  EXPECT_EQ(arm.label, "rope:base=1e6:dim=16:pairing=interleaved");
  EXPECT_EQ(json::parse(arm.options),
            json({{"base", 1e6}, {"dim", 16}, {"pairing", "interleaved"}}));
}

TEST(Arms, AWindowBringsWhatItIsAWindowOf) {
  const std::vector<Arm> arms = make_arms({"window", "window:of=alibi", "rope"}, 1, on_text());
  ASSERT_EQ(arms.size(), 4);
  EXPECT_EQ(arms[0].name(), "rope-0");
  EXPECT_EQ(arms[1].name(), "window-0");
  EXPECT_EQ(arms[1].weights_from, "rope-0");
  EXPECT_EQ(arms[2].name(), "alibi-0");
  EXPECT_EQ(arms[3].weights_from, "alibi-0");
}

TEST(Arms, WhatReadsATrainedRopeBringsIt) {
  const std::vector<Arm> arms = make_arms(
      {"rerope", "leaky-rerope", "self-extend", "xpos:weights=rope", "rerope:weights=own"}, 1,
      on_text());
  ASSERT_EQ(arms.size(), 6);
  EXPECT_EQ(arms[0].name(), "rope-0");
  for (size_t n = 1; n < 5; ++n) EXPECT_EQ(arms[n].weights_from, "rope-0");
  EXPECT_EQ(arms[5].weights_from, "");
  EXPECT_EQ(arms[5].options, "{}");
  // The longest test length is 1024. Beyond 64, 960 distances must fit into 64; beyond 32, 992 must
  // fit into 96.
  EXPECT_EQ(json::parse(arms[2].options), json({{"factor", 15.0}}));
  EXPECT_EQ(json::parse(arms[3].options), json({{"group", 11}}));
  EXPECT_EQ(json::parse(arms[4].options), json::object());
}

TEST(Arms, RefuseWeightsOfWhatIsNotTrained) {
  EXPECT_THAT([] { make_arms({"rope:weights=window"}, 1, on_text()); },
              ThrowsMessage<Error>(
                  HasSubstr("weights: expected a method that is trained, but got window")));
  EXPECT_THAT(
      [] { make_arms({"rope:weights=3"}, 1, on_text()); },
      ThrowsMessage<Error>(HasSubstr("weights: expected a method's name or own, but got 3")));
}

TEST(Arms, LearnedPositionsReachTheLongestText) {
  const Arm arm = make_arms({"learned"}, 1, on_text()).at(0);
  EXPECT_EQ(json::parse(arm.options).at("rows"), 1024);
}

TEST(Arms, HaveAMemoryOfTheirOwnOrTheSurveys) {
  const std::vector<Arm> arms =
      make_arms({"rope", "rope:memory=0", "t5:memory=64", "window"}, 1, on_text(), {.memory = 128});
  ASSERT_EQ(arms.size(), 4);
  EXPECT_EQ(arms[0].name(), "rope:memory=128-0");
  EXPECT_EQ(arms[0].memory, 128);
  EXPECT_EQ(arms[0].options, "{}");
  EXPECT_EQ(arms[1].name(), "rope:memory=0-0");
  EXPECT_EQ(arms[1].memory, 0);
  EXPECT_EQ(arms[2].memory, 64);
  EXPECT_EQ(arms[3].name(), "window:memory=128-0");
  EXPECT_EQ(arms[3].weights_from, "rope:memory=128-0");
  EXPECT_EQ(json(json(arms[2]).get<Arm>()), json(arms[2]));
}

TEST(Arms, TablesReachTheFarthestDistance) {
  const auto option = [](const char* method, const char* name, int64_t memory) {
    return json::parse(make_arms({method}, 1, on_text(), {.memory = memory}).at(0).options)
        .at(name);
  };
  EXPECT_EQ(option("relative-key", "max_position_embeddings", 0), 1024);
  EXPECT_EQ(option("relative-key", "max_position_embeddings", 2000), 2128);
  EXPECT_EQ(option("tupe", "max_positions", 0), 1024);
}

TEST(Arms, SayWhatIsWrong) {
  EXPECT_THAT([] { make_arms(std::vector<std::string>{}, 1, on_text()); },
              ThrowsMessage<Error>(HasSubstr("expected at least one")));
  EXPECT_THAT([] { make_arms({"rope"}, 0, on_text()); },
              ThrowsMessage<Error>(HasSubstr("seeds: expected at least 1, but got 0")));
  EXPECT_THAT(
      [] { make_arms({"rope:memory=some"}, 1, on_text()); },
      ThrowsMessage<Error>(HasSubstr("memory: expected 0 to 1073741824, but got \"some\"")));
  EXPECT_THAT([] { make_arms({"rope"}, 1, on_text(), {.memory = -1}); },
              ThrowsMessage<Error>(HasSubstr("memory: expected at least 0, but got -1")));
  EXPECT_THAT([] { make_arms({"rope:base"}, 1, on_text()); },
              ThrowsMessage<Error>(HasSubstr("expected NAME:OPTION=VALUE, but got base")));
  EXPECT_THAT([] { make_arms({"alibi:max_bias=2:train=one:max_bias=3"}, 1, on_text()); },
              ThrowsMessage<Error>("methods: alibi:max_bias=2:train=one:max_bias=3: max_bias: "
                                   "expected it once, but got 2 and 3"));
  EXPECT_THAT([] { request_of("rope:base=5:base=5", "plot"); },
              ThrowsMessage<Error>(HasSubstr("plot: rope:base=5:base=5: base: expected it once")));
}

}  // namespace
}  // namespace sextant::lab
