// What an arm found: result.json in its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"

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
  // What `sliding` is the mean of, block by block, to a millionth: methods are compared on the same
  // blocks. Empty in results of versions that kept only the mean.
  std::vector<double> sliding_blocks = {};
};

// Of texts of this length whose question stands this far behind its pair.
struct AtDistance {
  int64_t length = 0, distance = 0;
  // Share answered right, 1/16 by chance. Its error is that of (right + 2) of (texts + 4) (Agresti
  // and Coull 1998): all of 128 right leaves an error of 0.01, and not of 0.
  Mean accuracy;
  // Text by text, '1' where the answer was right and '0' where not; the texts are the same for all.
  // Empty in results of versions that kept only the share.
  std::string right = {};
};

// Of one layer, in windows of this length: see attention_entropy.h.
struct AttentionAt {
  int64_t length = 0, layer = 0;
  double entropy = 0;  // nats
  double span = 0;     // positions
  // Share of the weights at distance 0, 1, 2 to 3, 4 to 7, ...: means as above. Empty in results of
  // versions that did not look; so are the pictures below.
  std::vector<double> at_distance = {};
};

// What an encoding does, drawn from the model that was tested: see pictures.h.
struct Pictures {
  // Of an encoding that changes scores: by head, the score of one vector as query and key at each
  // of these distances; NaN: not seen.
  std::vector<int64_t> distances = {};
  std::vector<std::vector<double>> scores = {};
  // Of one that adds to the input: what it adds at positions 0, step, 2 step, ... (some of the
  // channels), and the cosines between what it adds at each two of them.
  int64_t step = 0;
  std::vector<std::vector<double>> vectors = {}, cosines = {};
  // Weights of attention in one text of the longest length, means over layers and heads: of queries
  // in cells of `cell` positions, on average, to all keys of a cell; row by row, up to the query's
  // own cell.
  int64_t cell = 0;
  std::vector<std::vector<double>> attention = {};
};

struct ArmResult {
  Arm arm;
  bool diverged = false;  // the loss was no longer a number: the training is void, no measures
  std::string message;    // why
  int64_t weights = 0;
  double train_seconds = 0, test_seconds = 0;  // of work, interruptions left out
  std::vector<AtLength> lengths;
  std::vector<double> loss_at;  // at the longest length, by bin of positions
  std::vector<AttentionAt> attention;
  Pictures pictures = {};  // of seed 0 on text; else empty
  std::vector<AtDistance>
      retrieval;                   // of an arm that learns pairs; the measures above are then empty
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
