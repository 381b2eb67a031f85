#include "sextant/torch/group.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "tests/torch/processes.h"

namespace sextant::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string rank_text(const Group& group) { return std::to_string(group.rank()); }

// The first element of each tensor.
std::string firsts(const std::vector<at::Tensor>& tensors) {
  std::string all;
  for (const at::Tensor& x : tensors)
    all += (all.empty() ? "" : " ") + std::to_string(x.flatten()[0].item<int64_t>());
  return all;
}

void expect_all(const std::vector<Ended>& ended, const std::string& message) {
  EXPECT_THAT(ended, Each(Field(&Ended::message, message)));
}

TEST(Group, SumsTensorsOfSeveralTypesInPlace) {
  const auto ended = in_processes(3, [] {
    const Group group = Group::from_environment();
    const auto mine = static_cast<double>(group.rank() + 1);
    const at::Tensor columns = at::full({4, 5}, 10 * mine).t();  // not contiguous
    const std::vector<at::Tensor> tensors = {
        at::full({3}, mine), at::full({2, 2}, mine, at::kDouble), columns, at::zeros({0})};
    group.all_reduce(tensors);
    return firsts({tensors[0], tensors[1], tensors[2].select(1, 3)});
  });
  expect_all(ended, "6 6 60");
}

TEST(Group, BroadcastsFromOneRank) {
  const auto ended = in_processes(2, [] {
    const Group group = Group::from_environment();
    const at::Tensor x = at::full({3}, group.rank() + 7), y = at::full({2}, group.rank());
    group.broadcast({x}, 1);
    group.broadcast({y});
    return firsts({x, y});
  });
  expect_all(ended, "8 0");
}

TEST(Group, PassesTensorsAroundTheRing) {
  for (const int size : {2, 3}) {
    const auto ended = in_processes(size, [] {
      const Group group = Group::from_environment();
      std::vector<at::Tensor> held = {at::full({1000, 100}, group.rank()),
                                      at::full({2}, 10 * group.rank(), at::kDouble)};
      std::string all;
      for (int64_t step = 0; step < group.size(); ++step) {
        RingTransfer transfer = group.pass_on(held);
        all += firsts(held) + ", ";
        held = transfer.wait();
      }
      return all + firsts(held);
    });
    for (int rank = 0; rank < size; ++rank) {
      std::string expected;
      for (int step = 0; step <= size; ++step) {
        const int from = (rank - step + size) % size;
        expected += (step ? ", " : "") + std::to_string(from) + " " + std::to_string(10 * from);
      }
      EXPECT_EQ(ended[rank].message, expected);
    }
  }
}

// Rank 1 is killed, in one case after it has computed for longer than ranks wait to connect. The
// others throw at once, although a call may take half an hour.
TEST(Group, AKilledRankIsAnErrorInTheOthers) {
  for (const bool reduces : {false, true}) {
    const auto ended = in_processes(3, [&] {
      const Group group = Group::from_environment({.connect = std::chrono::seconds(5)});
      const at::Tensor x = at::full({1000}, 1.0);
      group.all_reduce({x});
      if (group.rank() == 1) {
        if (reduces) usleep(6'000'000);
        kill(getpid(), SIGKILL);
      }
      if (reduces)
        group.all_reduce({x});
      else
        for (int step = 0; step < 3; ++step) group.pass_on({x}).wait();
      return rank_text(group);
    });
    EXPECT_EQ(ended[1].signal, SIGKILL);
    for (const int rank : {0, 2}) {
      EXPECT_THAT(
          ended[rank].message,
          AllOf(StartsWith("Error: group: rank " + std::to_string(rank) + " of 3: expected"),
                HasSubstr("but a rank has ended, failed or does not answer")));
      EXPECT_GE(ended[rank].seconds, reduces ? 6 : 0);
      EXPECT_LE(ended[rank].seconds, 30);
    }
  }
}

// torchrun's agent may listen at MASTER_PORT with a store of another protocol: here it is mute.
TEST(Group, MeetsBesideAnAgentThatListensAtItsPort) {
  setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  const auto ended = in_processes(2, [] {
    const bool first = std::string(std::getenv("RANK")) == "0";
    const int agent = first ? listen_at(std::stoi(std::getenv("MASTER_PORT"))) : -1;
    const Group group = Group::from_environment();
    const at::Tensor x = at::full({1}, group.rank() + 1);
    group.all_reduce({x});
    if (first) close(agent);
    return firsts({x});
  });
  unsetenv("TORCHELASTIC_USE_AGENT_STORE");
  expect_all(ended, "3");
  EXPECT_LE(ended[0].seconds, 20);
}

std::string error_of() {
  try {
    return "group of " + std::to_string(Group::from_environment().size());
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Group, IsOfOneProcessWithoutALauncher) {
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
  const Group group = Group::from_environment();
  EXPECT_EQ(group.rank(), 0);
  EXPECT_EQ(group.size(), 1);
  const at::Tensor x = at::full({2}, 3.0);
  group.all_reduce({x});
  group.broadcast({x});
  EXPECT_EQ(firsts(group.pass_on({x}).wait()), "3");
}

TEST(Group, NamesTheVariableThatDoesNotFit) {
  const auto with = [](const std::vector<std::pair<const char*, const char*>>& values) {
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID",
                             "SLURM_NTASKS", "SEXTANT_CONNECT_SECONDS"})
      unsetenv(name);
    for (const auto& [name, value] : values) setenv(name, value, 1);
    return error_of();
  };
  EXPECT_EQ(with({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "group of 1");
  EXPECT_EQ(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}), "group of 1");
  EXPECT_EQ(with({{"RANK", "0"}}),
            "group: WORLD_SIZE: expected 1 or more, the number of processes, but it is not set");
  EXPECT_EQ(with({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
            "group: RANK: expected 0 to 1, below WORLD_SIZE, but got 2");
  EXPECT_EQ(with({{"SLURM_PROCID", "x"}, {"SLURM_NTASKS", "2"}}),
            "group: SLURM_PROCID: expected 0 to 1, below SLURM_NTASKS, but got x");
  EXPECT_EQ(with({{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
            "group: MASTER_ADDR: expected the host of rank 0, but it is not set");
  EXPECT_EQ(with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}}),
            "group: MASTER_PORT: expected 1 to 65535, the port at which rank 0 listens, but it is "
            "not set");
}

TEST(Group, AMissingRankIsAnErrorInTime) {
  const auto ended = in_processes(2, [] {
    if (std::string(std::getenv("RANK")) == "1") return std::string("never joined");
    setenv("SEXTANT_CONNECT_SECONDS", "2", 1);
    return error_of();
  });
  EXPECT_THAT(ended[0].message,
              AllOf(HasSubstr("group: rank 0: expected 2 ranks to meet at 127.0.0.1:"),
                    HasSubstr("within 2 s (SEXTANT_CONNECT_SECONDS), but got: ")));
  EXPECT_LE(ended[0].seconds, 20);
}

}  // namespace
}  // namespace sextant::testing
