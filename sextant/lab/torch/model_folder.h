// Writes a trained model as a folder in Hugging Face's format, and reads it back.
//
//   config.json             sextant/models/hugging_face/config.h
//   model.safetensors       .../layout.h; float32
//   tokenizer.json          .../tokenizer.h, and tokenizer_config.json, if tokens are bytes
//
// If transformers has the architecture, it loads the folder and computes the same logits.
#pragma once

#include <filesystem>
#include <string>

#include "sextant/models/decoder/decoder.h"
#include "sextant/models/decoder/decoder_options.h"

namespace sextant::lab {

// Writes the folder's files, config.json last. Returns "" or the reason why transformers has no
// such architecture; in the latter case the folder is in Sextant's own format, which only Sextant
// reads.
std::string write_model(const ModelConfig& config, const Decoder& decoder,
                        const std::filesystem::path& folder);

struct SavedModel {
  ModelConfig config;
  Decoder decoder;
};

// Throws Error that names the file, and the field or the tensor with its expected and actual shape.
// Weights may be F64, F32, F16 or BF16.
SavedModel read_model(const std::filesystem::path& folder);

// Reads only config.json.
ModelConfig read_model_config(const std::filesystem::path& folder);

// Returns the reason why transformers has no architecture for the model in the folder, or "".
std::string obstacle(const std::filesystem::path& folder);

// Copies the weights in the folder to a decoder of the same sizes, whose method may differ. Throws
// Error, without changing the decoder, if its parameters differ.
void read_weights(Decoder& decoder, const std::filesystem::path& folder);

}  // namespace sextant::lab
