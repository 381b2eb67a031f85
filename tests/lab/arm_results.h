// Results as of arms that were trained at length 32 and tested at 32 and 64, without a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sextant/lab/plan/arms.h"
#include "sextant/lab/result/result.h"

namespace sextant::lab {

inline Settings settings_of_results() {
  Settings settings;
  settings.training = {.length = 32, .bytes = 10'240};
  settings.test = {.lengths = {32, 64}, .blocks = 4, .bin = 32};
  settings.retrieval.length = 16;
  settings.retrieval.lengths = {16, 32};
  return settings;
}

// The arm that a survey makes of a label such as "pi" or "shaw:clip=2", with weights of its own.
inline Arm arm_of_label(const std::string& label, uint64_t seed, Task task) {
  Settings settings = settings_of_results();
  if (task == Task::kMasked || task == Task::kDirection) settings.objective = Objective::kMasked;
  Arm found;
  for (const Arm& arm : make_arms(std::vector{label}, 1, settings)) {
    if (arm.task == task) found = arm;
  }
  found.seed = seed;
  found.weights_from.clear();
  return found;
}

// change: the increase of all losses from length 32 to 64.
inline ArmResult arm_result(const std::string& label, uint64_t seed, double change,
                            Task task = Task::kText) {
  ArmResult result;
  result.arm = arm_of_label(label, seed, task);
  result.lengths = {{.length = 32, .loss = {2, 0.1}, .sliding = {1.5, 0.1}},
                    {.length = 64,
                     .loss = {2 + change, 0.1},
                     .sliding = {1.5 + change, 0.1},
                     .loss_change = {change, 0.01},
                     .sliding_change = {change, 0.01}}};
  for (AtLength& at : result.lengths) {
    const double mean = at.sliding.value;  // some blocks are harder for all arms
    at.sliding_blocks = {mean - 0.2, mean - 0.1, mean + 0.1, mean + 0.2};
  }
  result.loss_at = {2, 2 + change};
  result.train_loss = {3, 2.5};
  return result;
}

// The same for the retrieval task. settings_of_results() has questions at distances 2 and 8 in
// sequences of 16 tokens, and at 2 to 30 in sequences of 32.
inline ArmResult pair_result(const std::string& label, uint64_t seed, double near, double far) {
  ArmResult result;
  result.arm = arm_of_label(label, seed, Task::kPairs);
  for (const int64_t length : {16, 32}) {
    for (int64_t distance = 2; distance <= length / 2; distance *= 2) {
      result.retrieval.push_back(
          {.length = length, .distance = distance, .accuracy = {near, 0.02}});
    }
    result.retrieval.push_back({.length = length, .distance = length - 2, .accuracy = {far, 0.02}});
  }
  result.train_loss = {2, 1};
  return result;
}

// The same for the direction task: the share of marks tagged right at all distances.
inline ArmResult direction_result(const std::string& label, uint64_t seed, double share) {
  ArmResult result;
  result.arm = arm_of_label(label, seed, Task::kDirection);
  for (const int64_t length : {16, 32}) {
    for (int64_t gap = 1; gap <= 4; ++gap) {
      result.retrieval.push_back({.length = length, .distance = gap, .accuracy = {share, 0.02}});
    }
  }
  result.train_loss = {2, 1};
  return result;
}

// The result of an arm that evaluates the weights of another arm.
inline ArmResult reading(ArmResult result, const std::string& of) {
  result.arm.weights_from = Arm::name_of(of, result.arm.task, result.arm.seed);
  result.train_loss.clear();
  return result;
}

// The same with all sliding losses moved, so that the loss at L is `trained`.
inline ArmResult at_loss(ArmResult result, double trained) {
  const double by = trained - result.lengths.front().sliding.value;
  for (AtLength& at : result.lengths) {
    at.sliding.value += by;
    for (double& block : at.sliding_blocks) block += by;
  }
  return result;
}

}  // namespace sextant::lab
