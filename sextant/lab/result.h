// What an arm found: result.json in its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sextant/lab/settings.h"

namespace sextant::lab {

// A mean over test blocks and its standard error, in nats per byte.
struct Mean {
  double value = 0, error = 0;
};

struct AtLength {
  int64_t length = 0;
  Mean loss;     // the blocks cut into texts of this length: every byte, whatever context it has
  Mean sliding;  // the last L/2 bytes of each block, at the end of a window of this length
  Mean loss_change, sliding_change;  // minus those at L, on the same bytes
};

struct ArmResult {
  Arm arm;
  bool diverged = false;  // the loss was no longer a number: the training is void, no measures
  std::string message;    // why
  int64_t weights = 0;
  double train_seconds = 0, test_seconds = 0;  // of work, interruptions left out
  std::vector<AtLength> lengths;
  std::vector<double> loss_at;     // at the longest length, by bin of positions
  std::vector<double> train_loss;  // means of kTrainLossSteps steps
  std::string machine;             // processor and libraries that made the numbers
};

inline constexpr int64_t kTrainLossSteps = 10;

void to_json(nlohmann::json& json, const ArmResult& result);
void from_json(const nlohmann::json& json, ArmResult& result);

// Files of an arm's folder.
inline constexpr const char* kArmFile = "arm.json";
inline constexpr const char* kResultFile = "result.json";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kLogFile = "log.txt";

// Throws Error that names the file if it is not there or not of its form.
nlohmann::json read_json(const std::filesystem::path& path);
void write_json(const std::filesystem::path& path, const nlohmann::json& json);

}  // namespace sextant::lab
