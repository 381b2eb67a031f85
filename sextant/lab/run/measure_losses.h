// `sextant evaluate` and `sextant extend` for checkpoints, which a Python worker measures
// (measure.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sextant/lab/plan/checkpoint.h"
#include "sextant/lab/result/model_work.h"
#include "sextant/lab/run/measure.h"

namespace sextant::lab {

struct CheckpointRequest {
  std::string command;         // "extend", for messages
  EvaluationRequest text;      // lengths in tokens, in rising order; stride 0: see below
  std::filesystem::path out;   // folder of the measurement; empty: runs/COMMAND-NAME
  std::string dtype = "auto";  // of the weights: auto, float32, bfloat16 or float16
  int threads = 1;
  HandOut hand_out = {};
};

// Blocks of the longest length if the request says none.
inline constexpr int64_t kCheckpointBlocks = 8;

// The folder of the measurement.
std::filesystem::path folder_of(const CheckpointRequest& request, const Checkpoint& checkpoint);

// The model as it is. Empty if `end` is not kDone; another call goes on. The stride is by default
// half of the shortest length, at most 4096.
std::optional<ModelEvaluation> evaluate_checkpoint(const CheckpointRequest& request,
                                                   const Checkpoint& checkpoint, MeasureEnd& end);

// The candidates, of which the first is the unchanged model; the training length is among the
// lengths. Empty if `end` is not kDone. The stride is by default the longest length minus L,
// at most L, so that `sliding` at the longest length scores tokens beyond L.
std::optional<Extension> extend_checkpoint(const CheckpointRequest& request,
                                           const Checkpoint& checkpoint,
                                           const std::vector<StretchCandidate>& candidates,
                                           MeasureEnd& end);

// The candidates of these names. No names: the eight best known ones. "all": all. Throws Error for
// an unknown name. The unchanged model is always the first. window is left out, which no model of
// transformers is stretched by.
std::vector<StretchCandidate> checkpoint_candidates(const Checkpoint& checkpoint, int64_t length,
                                                    const std::vector<std::string>& names);

}  // namespace sextant::lab
