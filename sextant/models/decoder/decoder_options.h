// What a decoder is made of, as data: config.json beside its weights. Without tensors.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant {

enum class Norm { kLayerNorm, kRmsNorm };
enum class Activation {
  kGelu,
  kSquaredRelu,  // So et al. 2021, "Primer"
  kSwiGlu,       // Shazeer 2020; two of its three matrices make the hidden layer
};

struct DecoderOptions {
  int64_t vocabulary = 256;  // bytes
  int64_t layers = 3;
  int64_t width = 128;
  int64_t heads = 4;
  int64_t key_heads = 4;    // fewer than heads: grouped queries
  int64_t mlp_width = 512;  // of the hidden layer
  Norm norm = Norm::kLayerNorm;
  Activation activation = Activation::kSquaredRelu;
  double norm_epsilon = 1e-5;
  // One matrix, times sqrt(width) for reading, reads and writes tokens; else there are two, read as
  // they are (Llama).
  bool tied = true;

  int64_t head_dim() const { return width / heads; }
  friend bool operator==(const DecoderOptions&, const DecoderOptions&) = default;
};

// "layernorm", "rmsnorm"; "gelu", "relu2", "swiglu". Throw Error that lists them.
Norm norm(const std::string& name);
Activation activation(const std::string& name);

// Throws Error that names the option if sizes do not fit each other.
void check(const DecoderOptions& options);

// Reading is strict: every field, no other.
void to_json(nlohmann::json& json, const DecoderOptions& options);
void from_json(const nlohmann::json& json, DecoderOptions& options);

}  // namespace sextant
