// A method with its options chooses a family or a reason why there is none; one table has the keys
// of each family's config.json.
#include "sextant/models/hugging_face/family.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "sextant/models/hugging_face/rotary.h"
#include "sextant/torch/method.h"

namespace sextant::hugging_face {
namespace {

using nlohmann::json;

constexpr std::array<FamilyName, 9> kNames{
    {{Family::kLlama, "llama", "LlamaForCausalLM"},
     {Family::kMistral, "mistral", "MistralForCausalLM"},
     {Family::kSmolLm3, "smollm3", "SmolLM3ForCausalLM"},
     {Family::kArcee, "arcee", "ArceeForCausalLM"},
     {Family::kStableLm, "stablelm", "StableLmForCausalLM"},
     {Family::kStarcoder2, "starcoder2", "Starcoder2ForCausalLM"},
     {Family::kMpt, "mpt", "MptForCausalLM"},
     {Family::kGpt2, "gpt2", "GPT2LMHeadModel"},
     {Family::kOwn, "sextant", "SextantDecoder"}}};

Choice own(std::string obstacle) { return {Family::kOwn, std::move(obstacle)}; }

// The family of a rope model with this norm and activation.
Family rotary_family(const DecoderOptions& model) {
  const bool gated = model.activation == Activation::kSwiGlu;
  if (model.norm == Norm::kRmsNorm) return gated ? Family::kLlama : Family::kArcee;
  return gated ? Family::kStableLm : Family::kStarcoder2;
}

Choice choose_rotary(const ModelConfig& config, const json& options, bool windowed) {
  const Family family = rotary_family(config.model);
  if (const std::string obstacle =
          rotary_obstacle(config, options, family == Family::kStableLm && !windowed);
      !obstacle.empty()) {
    return own(obstacle);
  }
  if (!windowed || family == Family::kStarcoder2) return {family, ""};
  if (family == Family::kLlama) return {Family::kMistral, ""};
  return own("a window with this norm and activation has no architecture there");
}

Choice choose_window(const ModelConfig& config, const json& options) {
  if (options.at("of") != "rope") return own("only windows over rope have an architecture there");
  if (!options.at("left").is_null() || options.at("sinks") != 0) {
    return own("a window with sinks, or with left, has no architecture there");
  }
  return choose_rotary(config, complete_options("rope", options.at("options")), true);
}

Choice choose_alibi(const DecoderOptions& model, const json& options) {
  // transformers' MPT has alibi_bias_max in its configuration but ignores it.
  if (options != complete_options("alibi", json::object())) {
    return own("transformers has alibi with its default options only");
  }
  if (model.norm != Norm::kLayerNorm || model.activation != Activation::kGelu) {
    return own("MPT, which has alibi, has layernorm and gelu");
  }
  if (model.mlp_width != 4 * model.width || model.key_heads != model.heads) {
    return own("MPT, which has alibi, has an mlp_width of 4 widths and as many key_heads as heads");
  }
  return {Family::kMpt, ""};
}

Choice choose_learned(const DecoderOptions& model) {
  if (model.norm != Norm::kLayerNorm || model.activation == Activation::kSwiGlu ||
      model.key_heads != model.heads) {
    return own(
        "GPT-2, which has learned positions, has layernorm, gelu or relu2, and as many key_heads "
        "as heads");
  }
  return {Family::kGpt2, ""};
}

}  // namespace

const FamilyName& name_of(Family family) {
  return *std::ranges::find(kNames, family, &FamilyName::family);
}

std::optional<Family> family_of(const std::string& model_type) {
  for (const FamilyName& name : kNames) {
    if (model_type == name.model_type) return name.family;
  }
  return std::nullopt;
}

bool has_norm_bias(Family family) {
  return family == Family::kStableLm || family == Family::kStarcoder2 || family == Family::kGpt2;
}

Choice choose_family(const ModelConfig& config) {
  // A class in Python, FILE.py:CLASS, is in no registry (sextant/lab/plan/own_methods.h).
  if (config.method.find(".py:") != std::string::npos)
    return own(config.method + " is an encoding of one's own");
  const json options = complete_options(config.method, json::parse(config.options));
  const DecoderOptions& model = config.model;
  if (!model.causal || model.padding >= 0) {
    return own("transformers has no bidirectional architecture with norms before each layer");
  }
  if (config.memory > 0) return own("a memory of segments has no architecture there");
  if (config.method == "rope") return choose_rotary(config, options, false);
  if (config.method == "window") return choose_window(config, options);
  if (config.method == "alibi") return choose_alibi(model, options);
  if (config.method == "learned") return choose_learned(model);
  if (config.method == "none" && model.norm == Norm::kRmsNorm &&
      model.activation == Activation::kSwiGlu) {
    return {Family::kSmolLm3, ""};
  }
  return own(config.method + " has no architecture there with this norm and activation");
}

Keys keys_of(Family family) {
  Keys keys{.width = "hidden_size",
            .layers = "num_hidden_layers",
            .heads = "num_attention_heads",
            .key_heads = "num_key_value_heads",
            .mlp_width = "intermediate_size",
            .length = "max_position_embeddings",
            .epsilon = "rms_norm_eps",
            .activation = "hidden_act"};
  switch (family) {
    case Family::kStableLm:
      keys.epsilon = "layer_norm_eps";
      break;
    case Family::kStarcoder2:
      keys.epsilon = "norm_epsilon";
      break;
    case Family::kMpt:
      return {.width = "d_model",
              .layers = "n_layers",
              .heads = "n_heads",
              .key_heads = nullptr,
              .mlp_width = nullptr,
              .length = "max_seq_len",
              .epsilon = "layer_norm_epsilon",
              .activation = nullptr};
    case Family::kGpt2:
      return {.width = "n_embd",
              .layers = "n_layer",
              .heads = "n_head",
              .key_heads = nullptr,
              .mlp_width = "n_inner",
              .length = "n_positions",
              .epsilon = "layer_norm_epsilon",
              .activation = "activation_function"};
    default:
      break;
  }
  return keys;
}

const char* word_of(Activation activation) {
  switch (activation) {
    case Activation::kGelu:
      return "gelu";
    case Activation::kSquaredRelu:
      return "relu2";
    case Activation::kSwiGlu:
      break;
  }
  return "silu";
}

}  // namespace sextant::hugging_face
