#include "sextant/lab/torch/run_arm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/plan/arms.h"
#include "sextant/lab/report/claims.h"
#include "sextant/lab/run/training_state.h"
#include "sextant/lab/torch/model_folder.h"
#include "sextant/models/decoder/decoder.h"
#include "tests/lab/laboratory.h"

namespace sextant::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Arm arm_of(const std::string& method, const std::string& weights_from = "") {
  return {.label = method, .method = method, .options = "{}", .weights_from = weights_from};
}

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// The result without the fields that interruptions may change.
nlohmann::json numbers_of(const std::filesystem::path& directory) {
  nlohmann::json result = read_json(directory / kResultFile);
  result.erase("train_seconds");
  result.erase("test_seconds");
  return result;
}

// Requests a stop after `reports` reports; checkpoints are as frequent as possible.
Ending run_for(const std::filesystem::path& directory, int reports) {
  volatile std::sig_atomic_t stop = 0;
  const Watch watch{.report =
                        [&, left = reports](const ProgressReport&) mutable {
                          if (--left == 0) stop = 1;
                        },
                    .stop = &stop,
                    .seconds_between_checkpoints = 0};
  return run_arm(directory, watch);
}

TEST(RunArm, LeavesWeightsAndAResultAndNothingElse) {
  const TemporaryFolder folder;
  const auto directory = prepare_arm(folder, arm_of("t5"), tiny_settings());
  EXPECT_EQ(run_arm(directory, {}), Ending::kDone);
  EXPECT_THAT(names_in(directory),
              ElementsAre("arm.json", "config.json", "model.safetensors", "result.json",
                          "tokenizer.json", "tokenizer_config.json"));
  const ArmResult result = read_json(directory / kResultFile).get<ArmResult>();
  EXPECT_FALSE(result.diverged);
  EXPECT_EQ(result.lengths.size(), 3);
  EXPECT_EQ(result.train_loss.size(), 9);
  EXPECT_EQ(result.attention.size(), 3);
  EXPECT_LT(result.lengths[0].loss.value, 3.5);  // chance: 5.5
}

TEST(RunArm, StoppedAgainAndAgainEndsWithTheSameNumbers) {
  const TemporaryFolder whole, pieces;
  const auto at_once = prepare_arm(whole, arm_of("t5"), tiny_settings());
  const auto in_pieces = prepare_arm(pieces, arm_of("t5"), tiny_settings());
  EXPECT_EQ(run_for(at_once, 1'000'000), Ending::kDone);
  int stops = 0;
  // The third run ends during the training, which has ten reports; the last ones end during the
  // test.
  for (const int reports : {2, 3, 5, 5, 2})
    stops += run_for(in_pieces, reports) == Ending::kStopped;
  EXPECT_EQ(stops, 5);
  EXPECT_EQ(run_for(in_pieces, 1'000'000), Ending::kDone);
  EXPECT_EQ(numbers_of(in_pieces), numbers_of(at_once));
  EXPECT_EQ(read_text(in_pieces / kWeightsFile), read_text(at_once / kWeightsFile));
}

TEST(RunArm, OfPairsStoppedAgainAndAgainEndsWithTheSameNumbers) {
  const TemporaryFolder whole, pieces;
  Arm arm = arm_of("alibi");
  arm.task = Task::kPairs;
  const Settings settings = tiny_settings_with_pairs(40);
  const auto at_once = prepare_arm(whole, arm, settings);
  const auto in_pieces = prepare_arm(pieces, arm, settings);
  EXPECT_EQ(run_arm(at_once, {}), Ending::kDone);
  // The last runs end during the test, which has nine distances.
  for (const int reports : {2, 3, 3, 4}) EXPECT_EQ(run_for(in_pieces, reports), Ending::kStopped);
  EXPECT_EQ(run_arm(in_pieces, {}), Ending::kDone);
  EXPECT_EQ(numbers_of(in_pieces), numbers_of(at_once));
  EXPECT_EQ(read_text(in_pieces / kWeightsFile), read_text(at_once / kWeightsFile));
  const ArmResult result = read_json(at_once / kResultFile).get<ArmResult>();
  EXPECT_EQ(result.retrieval.size(), 9);
  EXPECT_THAT(result.lengths, testing::IsEmpty());
  EXPECT_EQ(result.train_loss.size(), 4);
}

TEST(RunArm, TunedGoesOnFromTheWeightsOfAnother) {
  const TemporaryFolder whole, pieces;
  const Settings settings = tiny_settings();
  for (const TemporaryFolder* folder : {&whole, &pieces}) {
    run_arm(prepare_arm(*folder, arm_of("rope"), settings), {});
  }
  Arm arm = arm_of("rope", "rope-0");
  arm.label = "rope:tune=20";
  arm.tune = 20;
  const auto at_once = prepare_arm(whole, arm, settings);
  const auto in_pieces = prepare_arm(pieces, arm, settings);
  EXPECT_EQ(run_arm(at_once, {}), Ending::kDone);
  for (const int reports : {2, 2, 3}) EXPECT_EQ(run_for(in_pieces, reports), Ending::kStopped);
  EXPECT_EQ(run_arm(in_pieces, {}), Ending::kDone);
  EXPECT_EQ(numbers_of(in_pieces), numbers_of(at_once));
  EXPECT_EQ(read_text(in_pieces / kWeightsFile), read_text(at_once / kWeightsFile));
  const auto trained = read_json(whole / "arms/rope-0" / kResultFile).get<ArmResult>();
  const auto tuned = read_json(at_once / kResultFile).get<ArmResult>();
  EXPECT_EQ(tuned.train_loss.size(), 2);
  EXPECT_LT(tuned.train_loss[0], trained.train_loss[0]);
  EXPECT_LT(tuned.lengths[2].loss.value, trained.lengths[2].loss.value);
  EXPECT_EQ(read_model_config(at_once).train_length, 16) << "of the method";
}

TEST(RunArm, WithMemoryStoppedAgainAndAgainEndsWithTheSameNumbers) {
  const TemporaryFolder whole, pieces;
  Arm arm = arm_of("transformer-xl");
  arm.memory = 24;
  const auto at_once = prepare_arm(whole, arm, tiny_settings());
  const auto in_pieces = prepare_arm(pieces, arm, tiny_settings());
  EXPECT_EQ(run_arm(at_once, {}), Ending::kDone);
  for (const int reports : {1, 2, 4}) EXPECT_EQ(run_for(in_pieces, reports), Ending::kStopped);
  EXPECT_EQ(run_arm(in_pieces, {}), Ending::kDone);
  EXPECT_EQ(numbers_of(in_pieces), numbers_of(at_once));
  EXPECT_EQ(read_text(in_pieces / kWeightsFile), read_text(at_once / kWeightsFile));
  EXPECT_EQ(read_json(at_once / kResultFile).at("arm").at("memory"), 24);
  EXPECT_EQ(read_model_config(at_once).memory, 24);
}

// Trains twenty steps with each method and the survey's options: the loss decreases and every
// result is finite.
void expect_trained(const std::vector<std::string>& methods, int64_t memory,
                    Settings settings = tiny_settings()) {
  settings.training.bytes = 20 * settings.training.batch * settings.training.length;
  settings.test.blocks = 2;
  const TemporaryFolder folder;
  for (const Arm& arm : make_arms(methods, 1, settings, {.memory = memory})) {
    SCOPED_TRACE(arm.name());
    const auto directory = prepare_arm(folder, arm, settings);
    ASSERT_EQ(run_arm(directory, {}), Ending::kDone);
    const auto result = read_json(directory / kResultFile).get<ArmResult>();
    EXPECT_FALSE(result.diverged) << result.message;
    EXPECT_EQ(result.lengths.size(), settings.test.lengths.size());
    for (const AtLength& at : result.lengths) EXPECT_TRUE(std::isfinite(at.sliding.value));
    for (const double loss : result.loss_at) EXPECT_TRUE(std::isfinite(loss));
    if (arm.weights_from.empty()) {
      EXPECT_LT(result.train_loss.at(1), result.train_loss.at(0));
    }
  }
}

TEST(RunArm, EveryMethodTrains) {
  std::vector<std::string> names;
  for (const MethodInfo& info : methods()) {
    names.push_back(info.name);
    // A grid with a place for each token.
    if (info.grid_option) names.back() += ":" + std::string(info.grid_option) + "=[64,64]";
  }
  expect_trained(names, 0);
}

// Tables have a row for each tested position and no more.
TEST(RunArm, IsTestedAtNoMoreThanTheLengthOfItsTraining) {
  Settings settings = tiny_settings();
  settings.test.lengths = {settings.training.length};
  expect_trained({"learned", "hierarchical", "emd", "tupe", "relative-key", "recursive"}, 0,
                 settings);
}

TEST(RunArm, TablesByWordAndSharedProjectionsTrain) {
  expect_trained({"complex:amplitude=word:frequency=word-and-component:phase=word-and-component",
                  "complex:frequency=word:phase=word", "deberta:version=3",
                  "sinusoidal:layout=fairseq:padding_idx=1"},
                 0);
}

TEST(RunArm, OptionsOfReviewsTrain) {
  expect_trained({"sandwich:strength=0.25:first_index=0", "sandwich:ratio=4", "xpos:xi=0.99",
                  "alien-clock", "recursive:over=input", "recursive:over=input:cell=gru"},
                 0);
  expect_trained({"recursive:over=input", "recursive:over=input:cell=gru"}, 24);
}

TEST(RunArm, DroppedChannelsAreLostInTheTestOnly) {
  const TemporaryFolder folder;
  const Settings settings = tiny_settings();
  const std::vector<Arm> arms = make_arms(
      {"sinusoidal", "sinusoidal:drop_channels=8", "sinusoidal:drop_channels=16"}, 1, settings);
  ASSERT_EQ(arms.size(), 3);
  std::vector<ArmResult> results;
  for (const Arm& arm : arms) {
    const auto directory = prepare_arm(folder, arm, settings);
    ASSERT_EQ(run_arm(directory, {}), Ending::kDone);
    results.push_back(read_json(directory / kResultFile).get<ArmResult>());
    EXPECT_EQ(nlohmann::json(results.back().arm), nlohmann::json(arm));
  }
  EXPECT_THAT(results[1].train_loss, testing::IsEmpty());
  EXPECT_NE(results[1].lengths[0].loss.value, results[0].lengths[0].loss.value);
  // Without any channel the encoding adds nothing.
  Arm none = arm_of("none", "sinusoidal-0");
  const auto directory = prepare_arm(folder, none, settings);
  ASSERT_EQ(run_arm(directory, {}), Ending::kDone);
  const auto without = read_json(directory / kResultFile).get<ArmResult>();
  EXPECT_NEAR(results[2].lengths[0].loss.value, without.lengths[0].loss.value, 1e-5);
}

TEST(RunArm, RefusesToDropChannelsOfAMethodThatAddsNone) {
  const Settings settings = tiny_settings();
  const auto fails = [&](const char* method, const char* says) {
    const Arm arm = make_arms({method}, 1, settings).back();
    EXPECT_THAT([&] { method_of(arm, settings); }, ThrowsMessage<Error>(HasSubstr(says)));
  };
  fails("rope:drop_channels=4",
        "rope:drop_channels=4: drop_channels: expected a method that adds a vector to the input (");
  fails("sinusoidal:drop_channels=17", "drop_channels: expected 1 to 16");
}

TEST(RunArm, EveryRelativeMethodTrainsWithMemory) {
  std::vector<std::string> names;
  for (const MethodInfo& info : methods()) {
    if (info.grid_option) continue;  // not relative in a text
    const auto method =
        make_method(info.name, model_shape(tiny_settings().model, 16), nlohmann::json::object());
    if (method->relative()) names.push_back(info.name);
  }
  EXPECT_GE(names.size(), 15);
  expect_trained(names, 24);
}

TEST(RunArm, GoesOnFromTheCheckpointBeforeADamagedOne) {
  const TemporaryFolder whole, damaged;
  const auto at_once = prepare_arm(whole, arm_of("rope"), tiny_settings());
  const auto directory = prepare_arm(damaged, arm_of("rope"), tiny_settings());
  run_arm(at_once, {});
  EXPECT_EQ(run_for(directory, 6), Ending::kStopped);
  const auto names = names_in(directory);
  ASSERT_THAT(names, ElementsAre("arm.json", "checkpoint-00000049.sxt", "checkpoint-00000050.sxt"));
  std::string newest = read_text(directory / "checkpoint-00000050.sxt");
  newest[newest.size() / 2] ^= 1;
  write_text(directory / "checkpoint-00000050.sxt", newest);
  write_text(directory / "checkpoint-00000060.sxt.AbCdEf", "cut short by a kill");
  EXPECT_EQ(run_arm(directory, {}), Ending::kDone);
  EXPECT_EQ(numbers_of(directory), numbers_of(at_once));
  EXPECT_EQ(read_text(directory / kWeightsFile), read_text(at_once / kWeightsFile));
  EXPECT_EQ(names_in(directory), names_in(at_once));
}

TEST(RunArm, ReportsRiseToTheTotal) {
  const TemporaryFolder folder;
  const auto directory = prepare_arm(folder, arm_of("none"), tiny_settings());
  std::vector<ProgressReport> reports;
  run_arm(directory, {.report = [&](const ProgressReport& report) { reports.push_back(report); }});
  ASSERT_FALSE(reports.empty());
  for (size_t n = 1; n < reports.size(); ++n) EXPECT_GT(reports[n].done, reports[n - 1].done);
  EXPECT_DOUBLE_EQ(reports.back().done, reports.back().total);
}

TEST(RunArm, AWindowIsTestedWithTheWeightsOfAnother) {
  const TemporaryFolder folder;
  const auto rope = prepare_arm(folder, arm_of("rope"), tiny_settings());
  const auto window = prepare_arm(folder, arm_of("window", "rope-0"), tiny_settings());
  run_arm(rope, {});
  run_arm(window, {});
  const auto trained = read_json(rope / kResultFile).get<ArmResult>();
  const auto tested = read_json(window / kResultFile).get<ArmResult>();
  EXPECT_EQ(tested.lengths[0].loss.value, trained.lengths[0].loss.value);
  EXPECT_NE(tested.lengths[2].loss.value, trained.lengths[2].loss.value);
  EXPECT_THAT(tested.train_loss, testing::IsEmpty());
}

TEST(RunArm, ATrainingThatDivergesIsAResult) {
  Settings settings = tiny_settings();
  settings.training.learning_rate = 100;
  settings.training.warmup = 0;
  settings.training.weight_decay = 100;  // each step multiplies the matrices by 1 - 10000
  const TemporaryFolder folder;
  const auto directory = prepare_arm(folder, arm_of("none"), settings);
  EXPECT_EQ(run_arm(directory, {}), Ending::kDone);
  const auto result = read_json(directory / kResultFile).get<ArmResult>();
  EXPECT_TRUE(result.diverged);
  EXPECT_THAT(result.message, HasSubstr("loss or gradient is"));
  EXPECT_THAT(result.lengths, testing::IsEmpty());
}

TEST(RunArm, NoticesThatTheTextHasChanged) {
  const TemporaryFolder folder;
  const auto directory = prepare_arm(folder, arm_of("none"), tiny_settings());
  write_text(folder / "text/7", "another text");
  EXPECT_THAT([&] { run_arm(directory, {}); },
              ThrowsMessage<Error>(HasSubstr("but the files now hold")));
}

TEST(RunArm, RefusesACheckpointOfOtherSettings) {
  const TemporaryFolder folder;
  const auto directory = prepare_arm(folder, arm_of("none"), tiny_settings());
  EXPECT_EQ(run_for(directory, 3), Ending::kStopped);
  Settings settings = tiny_settings();
  settings.training.clip = 2;
  prepare_arm(folder, arm_of("none"), settings);
  EXPECT_THAT([&] { run_arm(directory, {}); },
              ThrowsMessage<Error>(HasSubstr("expected one of this arm, but it belongs to")));
}

TEST(RunArm, RefusesWeightsOfAnotherModel) {
  const TemporaryFolder folder;
  run_arm(prepare_arm(folder, arm_of("t5"), tiny_settings()), {});
  const auto window = prepare_arm(folder, arm_of("window", "t5-0"), tiny_settings());
  EXPECT_THAT([&] { run_arm(window, {}); }, ThrowsMessage<Error>(HasSubstr("tensors, but got")));
}

TEST(MethodOf, IsMadeForEveryArmOfAClaim) {
  for (const Objective objective : {Objective::kCausal, Objective::kMasked}) {
    const Settings settings{.objective = objective};
    const std::vector<std::string> names = arms_of_claims(/*only_open=*/false, settings);
    EXPECT_GT(names.size(), 5);
    for (const Arm& arm : make_arms(names, 1, settings)) {
      EXPECT_NO_THROW(method_of(arm, settings)) << arm.name();
    }
  }
}

}  // namespace
}  // namespace sextant::lab
