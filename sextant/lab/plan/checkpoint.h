// A checkpoint: a folder in Hugging Face's format or a GGUF file, with any vocabulary.
// The state of an unfinished training is a TrainingState (run/training_state.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "sextant/rope_config/read_config.h"

namespace sextant::lab {

struct Checkpoint {
  std::filesystem::path path;  // absolute
  std::string name;            // of the folder or file
  std::string model_type;
  int64_t train_length = 0;  // L, as `sextant explain` finds it; 0: not known
  ReadRopeConfig rope;
  nlohmann::json files;  // names and sizes of the weights, to recognise them
};

// The absolute path of a model's folder or file, which ends with its name.
std::filesystem::path model_path(const std::filesystem::path& path);

// Whether the model is one of bytes, which `sextant train` and surveys write, or cannot be told for
// lack of a config.json. Throws Error if the config.json cannot be read.
bool is_model_of_bytes(const std::filesystem::path& path);

// Reads the configuration and looks for the files, but reads no weights. Throws Error that names
// the file or field if `command` cannot measure the model: no configuration, no causal language
// model, no tokenizer, missing weights.
Checkpoint read_checkpoint(const std::string& command, const std::filesystem::path& path);

// Throws Error if the checkpoint's positions cannot be stretched: no rotary ones, or a stretch
// already.
void check_can_stretch(const Checkpoint& checkpoint);

}  // namespace sextant::lab
