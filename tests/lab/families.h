// A decoder of each architecture that transformers supports, and of some that it does not.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/models/decoder/decoder.h"
#include "sextant/models/decoder/decoder_options.h"
#include "sextant/models/hugging_face/family.h"

namespace sextant::lab {

struct FamilyCase {
  std::string name;
  hugging_face::Family family;
  ModelConfig config;
};

inline constexpr int64_t kFamilyLength = 16;  // the training length L

inline ModelConfig family_config(const std::string& method, const nlohmann::json& options,
                                 Norm norm, Activation activation) {
  return {.model = {.layers = 2,
                    .width = 48,
                    .heads = 3,
                    .key_heads = 3,
                    .mlp_width = 4 * 48,
                    .norm = norm,
                    .activation = activation},
          .method = method,
          .options = options.dump(),
          .train_length = kFamilyLength};
}

inline Decoder random_decoder(const ModelConfig& config, uint64_t seed = 1) {
  Decoder decoder(config.model,
                  make_method(config.method, model_shape(config.model, config.train_length),
                              nlohmann::json::parse(config.options)),
                  seed);
  // With norm gains of 1, a test could not see a gain in the wrong place.
  for (const NamedParameter& parameter : decoder.parameters()) {
    if (!parameter.name.ends_with("norm")) continue;
    at::Tensor gain = parameter.value.detach();
    for (int64_t n = 0; n < gain.numel(); ++n) {
      gain.data_ptr<float>()[n] +=
          0.1F * static_cast<float>((n * 7 + static_cast<int64_t>(parameter.name.size())) % 5);
    }
  }
  return decoder;
}

inline std::vector<FamilyCase> family_cases() {
  using hugging_face::Family;
  constexpr Norm kRms = Norm::kRmsNorm, kLayer = Norm::kLayerNorm;
  constexpr Activation kGelu = Activation::kGelu, kRelu2 = Activation::kSquaredRelu,
                       kGated = Activation::kSwiGlu;
  using nlohmann::json;
  std::vector<FamilyCase> cases;
  const auto add = [&](const std::string& name, Family family, const ModelConfig& config) {
    cases.push_back({name, family, config});
    return &cases.back().config;
  };
  const auto stretched = [](const json& stretch) -> json {
    return {{"stretch", stretch}, {"dynamic", "length"}};
  };
  const json none = json::object();

  add("llama", Family::kLlama, family_config("rope", none, kRms, kGated));
  add("llama-untied", Family::kLlama, family_config("rope", none, kRms, kGated))->model.tied =
      false;
  ModelConfig* grouped =
      add("llama-grouped-interleaved", Family::kLlama,
          family_config("rope", {{"pairing", "interleaved"}, {"base", 500.0}}, kRms, kGated));
  grouped->model.key_heads = 1;
  grouped->model.norm_epsilon = 1e-3;
  const std::vector<std::pair<std::string, json>> stretches = {
      {"linear", "linear*4"},
      {"ntk", "ntk*4"},
      {"by-parts",
       {{"rope_type", "by-parts"}, {"factor", 4}, {"beta_slow", 0.25}, {"beta_fast", 2}}},
      {"llama3",
       {{"rope_type", "llama3"},
        {"factor", 4},
        {"low_freq_factor", 0.25},
        {"high_freq_factor", 2},
        {"original_max_position_embeddings", 16}}},
      {"yarn", "yarn*4"},
      {"yarn-few-turns",
       {{"rope_type", "yarn"}, {"factor", 4}, {"beta_fast", 2}, {"beta_slow", 0.1}}},
      {"dynamic", "dynamic*1"},
      {"dynamic-2", "dynamic*2"},
      {"longrope",
       {{"rope_type", "longrope"},
        {"factor", 4},
        {"original_max_position_embeddings", 16},
        {"short_factor", {1, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6}},
        {"long_factor", {1, 1.5, 2, 2.5, 3, 3.5, 4, 5}}}}};
  for (const auto& [name, stretch] : stretches) {
    add("llama-" + name, Family::kLlama, family_config("rope", stretched(stretch), kRms, kGated));
  }
  add("mistral", Family::kMistral, family_config("window", {{"window", 10}}, kRms, kGated));
  add("mistral-at-L", Family::kMistral,
      family_config("window", {{"options", stretched("yarn*4")}}, kRms, kGated));
  add("smollm3", Family::kSmolLm3, family_config("none", none, kRms, kGated));
  add("arcee-gelu", Family::kArcee, family_config("rope", none, kRms, kGelu));
  add("arcee-relu2-yarn", Family::kArcee, family_config("rope", stretched("yarn*4"), kRms, kRelu2));
  add("stablelm", Family::kStableLm, family_config("rope", none, kLayer, kGated));
  add("stablelm-half", Family::kStableLm,
      family_config("rope", {{"dim", 8}, {"pairing", "interleaved"}}, kLayer, kGated));
  add("starcoder2-gelu", Family::kStarcoder2, family_config("rope", none, kLayer, kGelu));
  add("starcoder2-relu2", Family::kStarcoder2,
      family_config("rope", stretched("linear*4"), kLayer, kRelu2));
  add("starcoder2-window", Family::kStarcoder2, family_config("window", none, kLayer, kRelu2));
  add("mpt", Family::kMpt, family_config("alibi", none, kLayer, kGelu));
  add("gpt2", Family::kGpt2,
      family_config("learned", {{"rows", 64}, {"init_std", 0.5}}, kLayer, kGelu));
  add("gpt2-relu2", Family::kGpt2,
      family_config("learned", {{"rows", 64}, {"init_std", 0.5}}, kLayer, kRelu2));

  add("own-t5", Family::kOwn, family_config("t5", none, kLayer, kRelu2));
  add("own-alibi-relu2", Family::kOwn, family_config("alibi", none, kLayer, kRelu2));
  add("own-rerope", Family::kOwn, family_config("rerope", none, kRms, kGated));
  add("own-sinusoidal", Family::kOwn, family_config("sinusoidal", none, kLayer, kGelu));
  add("own-dynamic-yarn", Family::kOwn,
      family_config("rope", stretched("dynamic-yarn"), kRms, kGated));
  add("own-memory", Family::kOwn, family_config("rope", none, kRms, kGated))->memory = 16;
  return cases;
}

// `length` bytes from a fixed formula.
inline std::vector<int64_t> family_tokens(int64_t length) {
  std::vector<int64_t> tokens;
  for (int64_t n = 0; n < length; ++n) tokens.push_back((n * n * 31 + 7 * n + 65) % 256);
  return tokens;
}

}  // namespace sextant::lab
