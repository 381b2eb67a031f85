// A method with its options chooses a family or a reason why there is none. families.json has what
// differs between the families' files.
#include "sextant/models/hugging_face/family.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "sextant/models/hugging_face/config.h"
#include "sextant/torch/method.h"

namespace sextant {

extern const std::string_view kModelFamilies;

}  // namespace sextant

namespace sextant::hugging_face {
namespace {

using nlohmann::json;

// In the order of Family.
constexpr const char* kModelTypes[] = {"llama",      "mistral", "smollm3", "arcee",  "stablelm",
                                       "starcoder2", "mpt",     "gpt2",    "sextant"};

std::vector<FamilyFacts> read_facts() {
  const json table = json::parse(kModelFamilies);
  std::vector<FamilyFacts> all;
  for (const char* const type : kModelTypes) {
    const json& row = table.at(type);
    const auto flag = [&](const char* name) { return row.value(name, false); };
    const auto object = [&](const char* name, json common = json::object()) {
      common.update(row.value(name, json::object()));
      return common;
    };
    all.push_back({.model_type = type,
                   .architecture = row.at("architecture"),
                   .rms_norm = flag("rms_norm"),
                   .gated = flag("gated"),
                   .norm_bias = flag("norm_bias"),
                   .head_dim = flag("head_dim"),
                   .ties = flag("ties"),
                   .checked = object("checked"),
                   .if_missing = object("if_missing"),
                   .written = object("written"),
                   .keys = object("keys", table.at("common").at("keys")),
                   .modules = object("modules", table.at("common").at("modules"))});
  }
  return all;
}

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
  if (!options.at("left").is_null() || options.at("sinks") != 0)
    return own("a window with sinks, or with left, has no architecture there");
  return choose_rotary(config, complete_options("rope", options.at("options")), true);
}

Choice choose_alibi(const DecoderOptions& model, const json& options) {
  // transformers' MPT has alibi_bias_max in its configuration but ignores it.
  if (options != complete_options("alibi", json::object()))
    return own("transformers has alibi with its default options only");
  if (model.norm != Norm::kLayerNorm || model.activation != Activation::kGelu)
    return own("MPT, which has alibi, has layernorm and gelu");
  if (model.mlp_width != 4 * model.width || model.key_heads != model.heads)
    return own("MPT, which has alibi, has an mlp_width of 4 widths and as many key_heads as heads");
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

const FamilyFacts& facts_of(Family family) {
  static const std::vector<FamilyFacts> all = read_facts();
  return all.at(static_cast<size_t>(family));
}

std::optional<Family> family_of(const std::string& model_type) {
  const auto* const found = std::ranges::find(kModelTypes, model_type);
  if (found == std::end(kModelTypes)) return std::nullopt;
  return static_cast<Family>(found - std::begin(kModelTypes));
}

Choice choose_family(const ModelConfig& config) {
  // A class in Python, FILE.py:CLASS, is in no registry (sextant/lab/plan/own_methods.h).
  if (config.method.find(".py:") != std::string::npos)
    return own(config.method + " is an encoding of one's own");
  const json options = complete_options(config.method, json::parse(config.options));
  const DecoderOptions& model = config.model;
  if (!model.causal || model.padding >= 0)
    return own("transformers has no bidirectional architecture with norms before each layer");
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

}  // namespace sextant::hugging_face
