// `sextant train` in several processes, with the environment that torchrun gives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/small_model.h"
#include "tests/torch/processes.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class GroupTraining : public Model {
 protected:
  using Ranks = std::vector<std::unique_ptr<Running>>;

  // Starts `size` ranks of a training that saves after every step.
  Ranks start(int size, const std::string& to) {
    const std::string port = std::to_string(sextant::testing::free_port());
    Ranks ranks;
    for (int rank = 0; rank < size; ++rank) {
      const fs::path own = folder_ / ("rank-" + std::to_string(rank));
      fs::create_directories(own);
      ranks.push_back(std::make_unique<Running>(train_words(to, {"--save-seconds", "0"}), own, [&] {
        ::setenv("RANK", std::to_string(rank).c_str(), 1);
        ::setenv("WORLD_SIZE", std::to_string(size).c_str(), 1);
        ::setenv("MASTER_ADDR", "127.0.0.1", 1);
        ::setenv("MASTER_PORT", port.c_str(), 1);
      }));
    }
    return ranks;
  }

  void expect_done(const Ranks& ranks) const {
    for (const auto& rank : ranks) EXPECT_EQ(rank->wait(), 0) << rank->err();
  }

  // Waits until there is a checkpoint of the fifth step or a later one.
  void wait_for_checkpoint(const std::string& to, const Ranks& ranks) const {
    const fs::path arm = folder_ / to / "training/arms/model-0";
    const auto saved = [&] {
      if (!fs::exists(arm)) return false;
      for (const auto& entry : fs::directory_iterator(arm)) {
        const std::string name = entry.path().filename().string();
        if (name >= "checkpoint-00000005.sxt" && name.ends_with(".sxt")) return true;
      }
      return false;
    };
    while (!saved()) {
      ASSERT_FALSE(ranks[0]->is_over()) << ranks[0]->err();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  std::string weights(const std::string& to) const {
    return read_text(folder_ / to / "model.safetensors");
  }
  std::vector<double> losses(const std::string& to) const {
    return json::parse(read_text(folder_ / to / "training/arms/model-0/result.json"))
        .at("train_loss")
        .get<std::vector<double>>();
  }
};

TEST_F(GroupTraining, IsThatOfOneProcessAndGoesOnAfterAKillOrAStop) {
  ASSERT_EQ(train("one").status, 0);
  Ranks ranks = start(2, "whole");
  expect_done(ranks);
  EXPECT_THAT(ranks[0]->out(), HasSubstr("for 300 steps"));
  EXPECT_EQ(ranks[1]->out() + ranks[1]->err(), "");
  const std::string whole = weights("whole");
  EXPECT_NEAR(losses("whole")[0], losses("one")[0], 1e-6 * losses("one")[0]);
  EXPECT_NEAR(losses("whole").back(), losses("one").back(), 0.01);
  ranks = start(2, "whole");  // nothing is left to do
  expect_done(ranks);

  ranks = start(2, "killed");
  wait_for_checkpoint("killed", ranks);
  const auto killed = std::chrono::steady_clock::now();
  ::kill(ranks[1]->process(), SIGKILL);
  EXPECT_EQ(ranks[1]->wait(), -SIGKILL);
  EXPECT_EQ(ranks[0]->wait(), 1);
  EXPECT_LE(std::chrono::steady_clock::now() - killed, std::chrono::seconds(30));
  EXPECT_THAT(ranks[0]->err(), AllOf(HasSubstr("a rank has ended, failed or does not answer"),
                                     HasSubstr("To go on, start all 2 processes again, each with:\n"
                                               "  " SEXTANT_COMMAND " train ")));
  EXPECT_FALSE(fs::exists(folder_ / "killed/config.json"));
  ranks = start(2, "killed");
  expect_done(ranks);
  EXPECT_EQ(weights("killed"), whole);

  for (const int asked : {0, 1}) {
    const std::string to = "stopped-" + std::to_string(asked);
    ranks = start(2, to);
    wait_for_checkpoint(to, ranks);
    const int signal = asked == 0 ? SIGHUP : SIGTERM;
    ::kill(ranks[asked]->process(), signal);
    EXPECT_EQ(ranks[asked]->wait(), 128 + signal) << ranks[asked]->err();
    EXPECT_EQ(ranks[1 - asked]->wait(), 128 + SIGINT) << ranks[1 - asked]->err();
    EXPECT_THAT(ranks[0]->err(), HasSubstr("stopped. To go on, start all 2 processes again"));
    ranks = start(2, to);
    expect_done(ranks);
    EXPECT_EQ(weights(to), whole) << asked;
  }
}

TEST_F(GroupTraining, ABatchThatCannotBeDividedIsRefusedBeforeAnythingIsWritten) {
  const Ranks ranks = start(3, "model");
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->wait(), 1);
    EXPECT_THAT(rank->err(), HasSubstr("batch: expected a multiple of 3, the number of processes"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "model"));
}

// Slurm gives a batch script the number of its tasks, although it runs once.
TEST_F(GroupTraining, IsNotThatOfABatchScript) {
  const Ended trained = run(train_words("model"), [] {
    ::setenv("SLURM_JOB_ID", "17", 1);
    ::setenv("SLURM_PROCID", "0", 1);
    ::setenv("SLURM_NTASKS", "2", 1);
  });
  EXPECT_EQ(trained.status, 0) << trained.err;
  const Ended step = run(train_words("other"), [] {
    ::setenv("SLURM_PROCID", "0", 1);
    ::setenv("SLURM_NTASKS", "2", 1);
    ::setenv("SLURM_STEP_NUM_TASKS", "2", 1);
  });
  EXPECT_EQ(step.status, 1);
  EXPECT_THAT(step.err, HasSubstr("MASTER_ADDR: expected the host of rank 0, but it is not set"));
}

TEST_F(GroupTraining, IsNotThatOfAnArm) {
  const Ranks ranks = start(1, "model");
  expect_done(ranks);
  const fs::path arm = folder_ / "model/training/arms/model-0";
  fs::remove(arm / "result.json");
  const Ended again = run({"arm", arm.string()}, [] {
    ::setenv("RANK", "0", 1);
    ::setenv("WORLD_SIZE", "2", 1);
  });
  EXPECT_EQ(again.status, 0) << again.err;
}

}  // namespace
}  // namespace sextant::cli
