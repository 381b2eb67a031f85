// The sizes and variants of a decoder, as data: config.json beside its weights. No tensors.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace sextant {

enum class Norm { kLayerNorm, kRmsNorm };
enum class Activation {
  kGelu,
  kSquaredRelu,  // So et al. 2021, "Primer"
  kSwiGlu,       // Shazeer 2020; the hidden layer has two of its three matrices
};

struct DecoderOptions {
  int64_t vocabulary = 256;  // bytes
  int64_t layers = 3;
  int64_t width = 128;
  int64_t heads = 4;
  int64_t key_heads = 4;    // fewer than heads: grouped-query attention
  int64_t mlp_width = 512;  // width of the hidden layer
  Norm norm = Norm::kLayerNorm;
  Activation activation = Activation::kSquaredRelu;
  double norm_epsilon = 1e-5;
  // One matrix is both the embedding (times sqrt(width)) and the unembedding; otherwise there are
  // two, without a factor (Llama).
  bool tied = true;
  bool causal = true;    // false: attention in both directions, as in an encoder
  int64_t padding = -1;  // token that no position attends to; below 0: none
  // XLNet's two streams (Decoder::permuted_losses), with this token's embedding as the query
  // stream's input; below 0: none.
  int64_t query_token = -1;

  int64_t head_dim() const { return width / heads; }
  friend bool operator==(const DecoderOptions&, const DecoderOptions&) = default;
};

// "layernorm", "rmsnorm"; "gelu", "relu2", "swiglu". They throw an Error that lists these names.
Norm norm(const std::string& name);
Activation activation(const std::string& name);

// Throws an Error that names the option if sizes do not fit each other.
void check(const DecoderOptions& options);

// from_json() is strict: it expects every field and no other. `causal`, `padding` and
// `query_token` are written, and read, only where they differ from their defaults.
void to_json(nlohmann::json& json, const DecoderOptions& options);
void from_json(const nlohmann::json& json, DecoderOptions& options);

// The configuration of a model: everything but its weights.
struct ModelConfig {
  DecoderOptions model;
  std::string method;          // name in the registry
  std::string options = "{}";  // JSON object
  int64_t memory = 0;          // positions kept from earlier segments; 0: none
  int64_t train_length = 0;    // L: positions seen in training
};

// from_json() is strict: it expects every field and no other.
void to_json(nlohmann::json& json, const ModelConfig& config);
void from_json(const nlohmann::json& json, ModelConfig& config);

}  // namespace sextant
