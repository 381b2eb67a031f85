// A trained model as a folder in Hugging Face's form, there and back.
//
//   config.json             sextant/models/hugging_face/config.h
//   model.safetensors       .../layout.h; float32
//   tokenizer.json          .../tokenizer.h, and tokenizer_config.json: where tokens are bytes
//
// Where transformers has the architecture it loads the folder and gives the same logits.
#pragma once

#include <filesystem>
#include <string>

#include "sextant/models/config.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::lab {

// Writes the folder's files, config.json last. Returns "", or why transformers has no such
// architecture, in which case the folder is in Sextant's own words, which only Sextant reads.
std::string write_model(const ModelConfig& config, const Decoder& decoder,
                        const std::filesystem::path& folder);

struct SavedModel {
  ModelConfig config;
  Decoder decoder;
};

// Throws Error that names the file, and the field, or the tensor with the shape that was expected
// and the one there is. Weights may be F64, F32, F16 or BF16.
SavedModel read_model(const std::filesystem::path& folder);

// Only config.json.
ModelConfig read_model_config(const std::filesystem::path& folder);

// Why transformers has no architecture for the model that lies there; "" if it has.
std::string obstacle(const std::filesystem::path& folder);

// The weights that lie in the folder for a decoder of the same sizes, whatever method it reads them
// by. Throws Error, and changes nothing, if it has other parameters.
void read_weights(Decoder& decoder, const std::filesystem::path& folder);

}  // namespace sextant::lab
