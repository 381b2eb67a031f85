// A setting in the words of a Hugging Face config.json, of version 4 or 5; reading is in hugging_face.cc.
#include <nlohmann/json.hpp>
#include <type_traits>

#include "sextant/error.h"
#include "sextant/setting/hugging_face.h"

namespace sextant {
namespace {

using nlohmann::json;

json words(const Yarn& yarn) {
  json object = {{"rope_type", "yarn"},
                 {"factor", yarn.factor},
                 {"original_max_position_embeddings", yarn.original_length},
                 {"beta_fast", yarn.beta_fast},
                 {"beta_slow", yarn.beta_slow}};
  if (!yarn.truncate) object["truncate"] = false;
  if (yarn.ramp == Yarn::Ramp::kTurns) object["ramp"] = "turns";
  if (yarn.attention_factor) object["attention_factor"] = *yarn.attention_factor;
  if (yarn.mscale) object["mscale"] = *yarn.mscale;
  if (yarn.mscale_all_dim) object["mscale_all_dim"] = *yarn.mscale_all_dim;
  return object;
}

json words(const ByParts& parts, bool llama3) {
  json object = {{"rope_type", llama3 ? "llama3" : "by-parts"},
                 {"factor", parts.factor},
                 {"original_max_position_embeddings", parts.original_length}};
  object[llama3 ? "low_freq_factor" : "beta_slow"] = parts.slow;
  object[llama3 ? "high_freq_factor" : "beta_fast"] = parts.fast;
  return object;
}

json words(const Stretch& stretch, const std::string& type) {
  return std::visit(
      [&](const auto& kind) -> json {
        using Kind = std::decay_t<decltype(kind)>;
        if constexpr (std::is_same_v<Kind, std::monostate>) return {{"rope_type", "default"}};
        if constexpr (std::is_same_v<Kind, Linear>)
          return {{"rope_type", "linear"}, {"factor", kind.factor}};
        if constexpr (std::is_same_v<Kind, Ntk>)
          return {{"rope_type", "ntk"}, {"factor", kind.factor}};
        if constexpr (std::is_same_v<Kind, NtkMixed>)
          return {{"rope_type", "ntk-mixed"}, {"factor", kind.factor}, {"exponent", kind.exponent}};
        if constexpr (std::is_same_v<Kind, ByParts>) return words(kind, type == "llama3");
        if constexpr (std::is_same_v<Kind, PartNtk>)
          return {{"rope_type", "part-ntk"},
                  {"factor", kind.factor},
                  {"original_max_position_embeddings", kind.original_length}};
        if constexpr (std::is_same_v<Kind, Yarn>) return words(kind);
        if constexpr (std::is_same_v<Kind, Proportional>)
          return {{"rope_type", "proportional"},
                  {"partial_rotary_factor", kind.part},
                  {"factor", kind.factor}};
        fail("convert: " + type + ": expected a scaling with a name in Hugging Face's words");
      },
      stretch);
}

json words(const DynamicStretch& dynamic, const std::string& type) {
  json object = {{"rope_type", type},
                 {"original_max_position_embeddings", dynamic.original_length}};
  if (const auto* longrope = std::get_if<LongRope>(&dynamic.stretch)) {
    object["short_factor"] = dynamic.short_factors;
    object["long_factor"] = longrope->factors;
    object["factor"] = dynamic.factor;
    object["attention_factor"] = longrope->gain;
  } else if (dynamic.growth == Growth::kHuggingFace) {
    object["factor"] = dynamic.factor;
  } else if (const auto* yarn = std::get_if<Yarn>(&dynamic.stretch)) {
    object.update(words(*yarn));
    object.erase("factor");
    object["rope_type"] = type;
  } else if (const auto* parts = std::get_if<ByParts>(&dynamic.stretch)) {
    object["beta_slow"] = parts->slow;
    object["beta_fast"] = parts->fast;
  }
  return object;
}

bool known_to_hugging_face(const json& object) {
  for (const char* type :
       {"default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"}) {
    if (object.at("rope_type") == type) return !object.contains("ramp");
  }
  return false;
}

// The setting with what Hugging Face says otherwise: NTK is another base.
json object_with_base(const RotarySetting& setting, double& base) {
  base = setting.base;
  const auto* fixed = std::get_if<Stretch>(&setting.scaling.stretch);
  if (fixed && std::holds_alternative<Ntk>(*fixed)) {
    fail(
        "convert: ntk: expected a scaling that Hugging Face has, but it has none; write its base " +
        std::to_string(setting.base) + " * factor^(R / (R - 2)) into rope_theta");
  }
  json object = scaling_object(setting);
  if (!known_to_hugging_face(object)) {
    fail("convert: " + setting.scaling.type +
         ": expected a scaling that Hugging Face has a name for");
  }
  return object;
}

json& language_model(json& config) {
  const bool nested = config.contains("text_config") && config["text_config"].is_object() &&
                      !config.contains("rope_theta") && !config.contains("rope_parameters");
  return nested ? config["text_config"] : config;
}

void write_5(json& model, const std::vector<RotarySetting>& settings) {
  json parameters = json::object();
  for (const RotarySetting& setting : settings) {
    double base = 0;
    json object = object_with_base(setting, base);
    object["rope_theta"] = base;
    if (setting.layers.empty()) {
      parameters = object;
    } else {
      parameters[setting.layers] = object;
    }
  }
  model["rope_parameters"] = parameters;
}

void write_4(json& model, const std::vector<RotarySetting>& settings) {
  double base = 0;
  json object = object_with_base(settings[0], base);
  model["rope_theta"] = base;
  model["rope_scaling"] =
      object.at("rope_type") == "default" && !object.contains("mrope_section") ? json() : object;
  if (settings.size() == 1) return;
  const RotarySetting& local = settings[1];
  if (settings.size() > 2 || local.layers != "sliding_attention" ||
      local.scaling.type != "default") {
    fail("convert: hf4: expected one scaling for all layers, but got " +
         std::to_string(settings.size()) + "; version 5 can say them (--to hf5)");
  }
  model["rope_local_base_freq"] = local.base;
}

}  // namespace

json scaling_object(const RotarySetting& setting) {
  const Scaling& scaling = setting.scaling;
  json object = std::visit(
      [&](const auto& stretch) {
        std::string type = scaling.type == "su" ? "longrope" : scaling.type;
        return words(stretch, type);
      },
      scaling.stretch);
  if (!scaling.sections.empty()) {
    object["mrope_section"] = scaling.sections;
    if (scaling.interleaved_sections) object["mrope_interleaved"] = true;
  }
  if (scaling.query_scale.law == QueryLaw::kMinistral) {
    object["llama_4_scaling_beta"] = scaling.query_scale.strength;
  }
  return object;
}

json write_hugging_face(json config, const std::vector<RotarySetting>& settings, int version) {
  if (config.is_null()) config = json::object();
  json& model = language_model(config);
  for (const char* old :
       {"rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq", "rotary_emb_base",
        "original_max_position_embeddings", "use_dynamic_ntk"}) {
    model.erase(old);
  }
  const RotarySetting& first = settings.at(0);
  if (!model.contains("head_dim") && !model.contains("qk_rope_head_dim") &&
      !model.contains("num_attention_heads") && !model.contains("n_head")) {
    model["head_dim"] = first.head_dim;
  }
  const bool proportional = first.scaling.type == "proportional";
  if (first.rotary_dim != first.head_dim && !proportional &&
      !model.contains("partial_rotary_factor") && !model.contains("rotary_pct") &&
      !model.contains("rotary_dim") && !model.contains("qk_rope_head_dim")) {
    model["partial_rotary_factor"] =
        static_cast<double>(first.rotary_dim) / static_cast<double>(first.head_dim);
  }
  if (first.max_length > 0) model["max_position_embeddings"] = first.max_length;
  version == 4 ? write_4(model, settings) : write_5(model, settings);
  return config;
}

}  // namespace sextant
