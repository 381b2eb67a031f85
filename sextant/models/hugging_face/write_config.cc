// Writes a decoder's configuration in the fields of its family; read_config.cc reads it.
#include <nlohmann/json.hpp>

#include "sextant/models/hugging_face/config.h"
#include "sextant/models/hugging_face/keys.h"
#include "sextant/models/hugging_face/layout.h"
#include "sextant/models/hugging_face/rotary.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/torch/method.h"

namespace sextant::hugging_face {
namespace {

using nlohmann::json;

// MPT's biases end at max_seq_len, and a longer sequence is an error there; alibi is meant for
// longer ones, so max_seq_len is 16 training lengths.
constexpr int64_t kMptReach = 16;

// Features of the family's decoder that are off here.
json switched_off(Family family) {
  switch (family) {
    case Family::kLlama:
    case Family::kArcee:
    case Family::kMistral:
      return {{"attention_bias", false}, {"mlp_bias", false}, {"attention_dropout", 0.0}};
    case Family::kSmolLm3:
      return {{"attention_bias", false},
              {"mlp_bias", false},
              {"attention_dropout", 0.0},
              {"use_sliding_window", false},
              {"rope_theta", 1e4}};
    case Family::kStableLm:
      return {{"use_qkv_bias", false},
              {"qk_layernorm", false},
              {"use_parallel_residual", false},
              {"attention_dropout", 0.0},
              {"hidden_dropout", 0.0}};
    case Family::kStarcoder2:
      return {{"use_bias", false},
              {"attention_dropout", 0.0},
              {"residual_dropout", 0.0},
              {"embedding_dropout", 0.0}};
    case Family::kMpt:
      return {
          {"no_bias", true}, {"learned_pos_emb", false}, {"resid_pdrop", 0.0}, {"emb_pdrop", 0.0}};
    case Family::kGpt2:
      return {{"resid_pdrop", 0.0},
              {"embd_pdrop", 0.0},
              {"attn_pdrop", 0.0},
              {"scale_attn_weights", true},
              {"scale_attn_by_inverse_layer_idx", false},
              {"reorder_and_upcast_attn", false}};
    case Family::kOwn:
      break;
  }
  return json::object();
}

json sizes(const ModelConfig& config, Family family) {
  const Keys keys = keys_of(family);
  const DecoderOptions& model = config.model;
  json out = {{keys.width, model.width},
              {keys.layers, model.layers},
              {keys.heads, model.heads},
              {keys.epsilon, model.norm_epsilon},
              {keys.length, config.train_length}};
  if (keys.mlp_width != nullptr) out[keys.mlp_width] = model.mlp_width;
  if (keys.key_heads != nullptr) out[keys.key_heads] = model.key_heads;
  if (keys.activation != nullptr) out[keys.activation] = word_of(model.activation);
  if (has_head_dim(family)) out["head_dim"] = model.head_dim();
  return out;
}

json with_rope(json out, const ModelConfig& config, const json& options) {
  return write_hugging_face(std::move(out), {rope_config_of(config, options)}, 4);
}

json with_positions(json out, const ModelConfig& config, Family family) {
  const json options = complete_options(config.method, json::parse(config.options));
  const bool windowed = config.method == "window";
  switch (family) {
    case Family::kMpt:
      out["expansion_ratio"] = 4;
      out["max_seq_len"] = kMptReach * config.train_length;
      out["attn_config"] = {
          {"alibi", true},  {"alibi_bias_max", 8},      {"attn_pdrop", 0},   {"clip_qkv", nullptr},
          {"qk_ln", false}, {"softmax_scale", nullptr}, {"prefix_lm", false}};
      return out;
    case Family::kGpt2:
      if (!options.at("rows").is_null()) out["n_positions"] = options.at("rows");
      return out;
    case Family::kSmolLm3:
      out["no_rope_layers"] = std::vector<int>(static_cast<size_t>(config.model.layers), 0);
      return out;
    default:
      break;
  }
  if (family == Family::kMistral || family == Family::kStarcoder2) {
    out["sliding_window"] = nullptr;
    if (windowed) out["sliding_window"] = options.at("window");
    if (windowed && options.at("window").is_null()) out["sliding_window"] = config.train_length;
  }
  // StableLM's default rotates a quarter of the channels.
  if (family == Family::kStableLm) {
    const RopeConfig rope = rope_config_of(config, options);
    out["partial_rotary_factor"] =
        static_cast<double>(rope.rotary_dim) / static_cast<double>(rope.head_dim);
  }
  return with_rope(std::move(out), config,
                   windowed ? complete_options("rope", options.at("options")) : options);
}

}  // namespace

json write_config(const ModelConfig& config, Family family) {
  const FamilyName& name = name_of(family);
  json out = {{"architectures", {name.architecture}},
              {"model_type", name.model_type},
              {"vocab_size", config.model.vocabulary},
              {"torch_dtype", "float32"}};
  if (family == Family::kOwn) {
    out["sextant"] = config;
    return out;
  }
  // Byte vocabularies have no tokens for the begin, the end or padding.
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) out[token] = nullptr;
  out["tie_word_embeddings"] = false;
  out.update(sizes(config, family));
  out.update(switched_off(family));
  out["sextant"] = {{"train_length", config.train_length},
                    {"tied", config.model.tied},
                    {"pairing", pairing_of(config)}};
  return with_positions(std::move(out), config, family);
}

}  // namespace sextant::hugging_face
