// Writes a scaling in the fields of rope_parameters, without rope_theta.
#include <nlohmann/json.hpp>
#include <type_traits>

#include "sextant/base/error.h"
#include "sextant/rope_config/hugging_face.h"

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
    if (dynamic.short_gain) {
      object["short_mscale"] = *dynamic.short_gain;
      object["long_mscale"] = longrope->gain;
    } else {
      object["attention_factor"] = longrope->gain;
    }
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

}  // namespace

json scaling_object(const RopeConfig& config) {
  const RopeScaling& scaling = config.scaling;
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

}  // namespace sextant
