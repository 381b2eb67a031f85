// The result of an arm: result.json in the arm's folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

// A mean over test blocks and its standard error, in nats per byte; NaN if it was not kept.
struct Mean {
  double value = 0, error = 0;
};

struct AtLength {
  int64_t length = 0;
  Mean loss;     // blocks cut into sequences of this length, whatever the context of a byte
  Mean sliding;  // scored_bytes() of each block, in a window of this length
  Mean loss_change, sliding_change;  // minus the loss at length L, on the same bytes
  // `sliding` of each block, rounded to 1e-6: methods are compared on the same blocks. Empty in
  // results of versions that kept only the mean.
  std::vector<double> sliding_blocks = {};
};

// The small task in sequences of this length: retrieval of a pair `distance` tokens before the
// question, or direction with cues `distance` positions from the mark.
struct AtDistance {
  int64_t length = 0, distance = 0;
  // Share of right answers; 1/16 by chance in both tasks. The error is that of (right + 2) of
  // (sequences + 4) (Agresti and Coull 1998): 128 right answers of 128 have an error of 0.01
  // instead of 0.
  Mean accuracy = {};
  // One character per sequence, '1' for a right answer and '0' for a wrong one; the sequences are
  // the same for all methods. Empty in results of versions that kept only the share.
  std::string right = {};
};

// Attention of one layer in windows of this length, see attention_entropy.h.
struct AttentionAt {
  int64_t length = 0, layer = 0;
  double entropy = 0;  // nats
  double span = 0;     // mean distance, in positions
  // Share of the attention weights at distances 0, 1, 2 to 3, 4 to 7, ...; means over the same
  // heads and queries. Empty in results of versions that did not measure it, as are the samples
  // below.
  std::vector<double> at_distance = {};
};

// Share of the variance of p_i W_q W_k^T p_j that distance explains, for one head of a layer; NaN
// if the products do not vary. torch/probe_encoding.h.
struct HeadProducts {
  int64_t layer = 0, head = 0;
  double trained = 0, untrained = 0;  // with the trained W, and with those of the first step
};

// For an encoding that adds vectors p to the input; of other encodings there are no heads.
struct PositionProducts {
  double plain = 0;  // the same share for p_i . p_j
  std::vector<HeadProducts> heads = {};
};

// Samples of an encoding's effect, taken from the tested model and drawn by report/pictures.cc.
struct Pictures {
  // For an encoding that changes scores: by head, the score of one vector as query and key at each
  // of these distances, position of the query minus that of the key; below 0 only in models that
  // see both directions. NaN marks a masked distance.
  std::vector<int64_t> distances = {};
  std::vector<std::vector<double>> scores = {};
  // For an encoding that adds to the input: the vectors added at positions 0, step, 2 step, ... (a
  // subset of the channels), and the cosines between each two of these vectors.
  int64_t step = 0;
  std::vector<std::vector<double>> vectors = {}, cosines = {};
  // Its products p_i W_q W_k^T p_j after training: tiles of the positions 0, step, 2 step, ...
  // below L, one row of tiles per layer and one column per head, with a gap of NaN between them. A
  // tile is shown less its mean and in standard deviations.
  int64_t product_step = 0;
  std::vector<std::vector<double>> products = {};
  // Attention weights in one sequence of the longest length, means over layers and heads. Queries
  // and keys are grouped in cells of `cell` positions: the weights are averaged over the queries of
  // a cell and summed over the keys of a cell. Row by row, in causal models up to the query's own
  // cell.
  int64_t cell = 0;
  std::vector<std::vector<double>> attention = {};

  bool empty() const {
    return scores.empty() && vectors.empty() && products.empty() && attention.empty();
  }
};

struct ArmResult {
  Arm arm;
  bool diverged = false;  // the loss became NaN or infinite: there are no measures
  std::string message;    // reason of the divergence
  int64_t weights = 0;
  double train_seconds = 0, test_seconds = 0;  // time at work, without interruptions
  std::vector<AtLength> lengths;
  std::vector<double> loss_at;  // at the longest length, by bin of positions
  std::vector<AttentionAt> attention;
  PositionProducts positions = {};    // on text
  Pictures pictures = {};             // of seed 0 on text; empty for other arms
  std::vector<AtDistance> retrieval;  // of an arm on a small task, whose measures above are empty
  std::vector<double> train_loss;     // means of kTrainLossSteps steps
  std::string machine;                // processor and libraries that produced the numbers
};

inline constexpr int64_t kTrainLossSteps = 10;

void to_json(nlohmann::json& json, const ArmResult& result);
void from_json(const nlohmann::json& json, ArmResult& result);
ArmResult read_result(const std::filesystem::path& path);  // throws Error that names the file

// File names in an arm's folder.
inline constexpr const char* kArmFile = "arm.json";
inline constexpr const char* kResultFile = "result.json";
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kLogFile = "log.txt";

// The machines that arms of one comparison ran on.

// A processor with its torch, and the number of arms that ran there.
struct Machine {
  std::string name;
  size_t arms = 0;
};
// In the order of the arms, whose machines these are. Empty names are left out.
std::vector<Machine> machines_of(std::span<const std::string> names);
std::vector<Machine> machines_of(std::span<const ArmResult> results);

// A warning if there are several; else empty.
std::string unlike_machines_text(std::span<const Machine> machines);

}  // namespace sextant::lab
