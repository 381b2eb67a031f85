// The state of a training, and its file. A kill -9, a full disk or a flipped bit costs seconds of
// work and never a result.
//
//   header   64 bytes: magic, version, chunk size, step, payload bytes, CRC-32 of the header
//   chunks   1 MiB of payload each (the last one shorter), each with its CRC-32
//   footer   magic, CRC-32 of the file before it
//   payload  length of the index; index (JSON: owner of the state, names and sizes); sections
//
// The CRC of a chunk also covers the step and the chunk's index, so chunks of two checkpoints
// cannot be mixed. A file is written under a temporary name, flushed and renamed. The last two
// checkpoints are kept, and the newest valid one is used. The parser does not trust the file: see
// training_state_test. In file names and messages such a file is a "checkpoint"; a model on disk,
// lab::Checkpoint, is another thing (plan/checkpoint.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant::lab {

struct TrainingState {
  int64_t step = 0;             // steps done, which is also the position in the data
  std::string belongs_to = {};  // JSON of the settings, arm and text that the state belongs to
  std::vector<std::pair<std::string, std::string>> sections = {};  // name and bytes
};

std::string training_state_file(const TrainingState& state);
// Throws Error that names the wrong field and its offset.
TrainingState parse_training_state(std::string_view file);

// Writes DIRECTORY/checkpoint-STEP.sxt, then removes all checkpoints but the newest two.
void save_training_state(const TrainingState& state, const std::filesystem::path& directory);

// Returns the newest valid checkpoint in the directory, or nullopt if there is none. Adds to
// `remarks` each invalid checkpoint, with the reason. Throws Error if a valid checkpoint belongs to
// another training.
std::optional<TrainingState> newest_training_state(const std::filesystem::path& directory,
                                                   const std::string& belongs_to,
                                                   std::vector<std::string>& remarks);

}  // namespace sextant::lab
