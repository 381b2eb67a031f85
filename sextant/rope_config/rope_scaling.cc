// Writes a scaling in the fields of rope_parameters, without rope_theta.
#include "sextant/rope_config/rope_scaling.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <type_traits>

#include "sextant/base/error.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/scaling_reader.h"

namespace sextant {
namespace {

using nlohmann::json;

const std::map<std::string, std::function<void(ScalingReader&)>>& readers() {
  static const std::map<std::string, std::function<void(ScalingReader&)>> all = {
      {"default", &ScalingReader::read_plain},
      {"mrope", &ScalingReader::read_plain},  // Qwen2-VL's name for default with sections
      {"linear", &ScalingReader::read_linear},
      {"ntk", &ScalingReader::read_ntk},
      {"ntk-mixed",
       [](ScalingReader& r) {
         r.to.stretch =
             NtkMixed{r.factor(), r.fields.optional_number("exponent", 0, 100).value_or(0.75)};
       }},
      {"by-parts",
       [](ScalingReader& r) {
         ByParts parts = r.parts();
         parts.factor = r.factor();
         r.to.stretch = parts;
       }},
      {"part-ntk",
       [](ScalingReader& r) {
         r.to.stretch = PartNtk{
             .factor = r.factor(), .original_length = r.original_length(true), .base = r.base()};
       }},
      {"yarn", &ScalingReader::read_yarn},
      {"deepseek_yarn", &ScalingReader::read_deepseek_yarn},
      {"llama3", &ScalingReader::read_llama3},
      {"longrope", &ScalingReader::read_longrope},
      {"su", &ScalingReader::read_longrope},
      {"proportional", &ScalingReader::read_proportional},
      {"dynamic", &ScalingReader::read_dynamic},
      {"dynamic-linear",
       [](ScalingReader& r) { r.to.stretch = r.grown(Linear{}, Growth::kRatio); }},
      {"dynamic-ntk", [](ScalingReader& r) { r.to.stretch = r.grown(Ntk{}, Growth::kRatio); }},
      {"qwen-ntk", [](ScalingReader& r) { r.to.stretch = r.grown(Ntk{}, Growth::kDoubling); }},
      {"dynamic-by-parts",
       [](ScalingReader& r) { r.to.stretch = r.grown(r.parts(), Growth::kRatio); }},
      {"dynamic-yarn",
       [](ScalingReader& r) { r.to.stretch = r.grown(r.yarn_shape(), Growth::kRatio); }},
  };
  return all;
}

// The names of the papers and of `sextant survey` for types that files call otherwise.
const std::map<std::string, std::string>& aliases() {
  static const std::map<std::string, std::string> all = {{"pi", "linear"},
                                                         {"dynamic-pi", "dynamic-linear"}};
  return all;
}

std::string type_of(const JsonFields& fields, RopeScaling& to) {
  const auto type = fields.optional_string("rope_type"), old = fields.optional_string("type");
  if (type && old && *type != *old && *old != "mrope") {
    to.warnings.push_back("rope_type and type differ, and rope_type is used");
  }
  if (!type && !old) fields.refuse("rope_type", "the name of a scaling");
  return type ? *type : *old;
}

void read_common(const JsonFields& fields, RopeScaling& to) {
  to.base = fields.optional_number("rope_theta", 1e-3, 1e30);
  to.partial = fields.optional_number("partial_rotary_factor", 1e-6, 1);
  const char* sections = fields.has("mrope_section") ? "mrope_section" : "xdrope_section";
  to.sections = fields.optional_integers(sections, 1, 1 << 20);
  fields.skip("xdrope_section");  // HunYuan's first name of mrope_section
  to.interleaved_sections = fields.optional_flag("mrope_interleaved").value_or(false);
  to.plane_first = fields.optional_flag("mrope_plane_first").value_or(false);
  if (to.plane_first) {
    if (to.sections.size() != 3 || to.sections[0] != to.sections[1])
      fields.refuse(sections, "the pairs of height, width and time, the first two equal");
    std::ranges::rotate(to.sections, to.sections.begin() + 2);
  }
  // Some models' code saves these fields here and does not read them.
  for (const char* unread : {"interleaved", "max_position_embeddings", "finetuned"}) {
    fields.skip(unread);
  }
}

// Fields of other types have no effect and cause only a warning.
void say_idle(const JsonFields& fields, RopeScaling& to) {
  const json one = 1;
  std::string idle;
  size_t count = 0;
  for (const char* name :
       {"factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "mscale",
        "mscale_all_dim", "attention_factor", "low_freq_factor", "high_freq_factor", "truncate",
        "attn_factor", "extrapolation_factor", "apply_yarn_scaling", "mixed_b", "exponent",
        "short_factor", "long_factor", "short_mscale", "long_mscale"}) {
    if (fields.was_requested(name) || !fields.has(name)) continue;
    fields.skip(name);
    const std::string word = name;
    const bool neutral = word == "attention_factor" || word == "attn_factor" ||
                         word == "extrapolation_factor" || word == "apply_yarn_scaling";
    if (neutral && (fields.value(name) == one || fields.value(name) == json(true))) continue;
    idle += (count++ == 0 ? "" : ", ") + word;
  }
  if (count == 0) return;
  const bool plain = to.type == "default" || to.type == "mrope";
  to.warnings.push_back(
      plain ? "rope_type is " + to.type + ", so that it stretches nothing: " + idle +
                  " beside it has no effect"
            : idle + (count == 1 ? " has" : " have") + " no effect with rope_type " + to.type);
}

void refuse_unknown(const JsonFields& fields, const std::string& where) {
  const std::vector<std::string> unknown = fields.unrequested();
  if (unknown.empty()) return;
  std::string message = where + ": " + shown(unknown[0]) +
                        ": expected a field that its rope_type has, but got " +
                        shown(fields.value(unknown[0]));
  for (size_t n = 1; n < unknown.size(); ++n) {
    message += (n == 1 ? "; nor has it " : ", ") + shown(unknown[n]) + ": " +
               shown(fields.value(unknown[n]));
  }
  fail(message);
}

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

RopeScaling read_scaling(const json& object, const RopeScalingContext& context,
                         const std::string& where) {
  const ForeignFields fields(object, where);
  RopeScaling scaling;
  scaling.type = type_of(fields, scaling);
  const auto alias = aliases().find(scaling.type);
  if (alias != aliases().end() && !context.from_file) scaling.type = alias->second;
  const auto reader = readers().find(scaling.type);
  if (reader == readers().end()) {
    std::string known;
    for (const auto& [name, unused] : readers()) known += (known.empty() ? "" : ", ") + name;
    if (!context.from_file) {
      for (const auto& [name, unused] : aliases()) known += ", " + name;
    }
    fields.refuse(fields.has("rope_type") ? "rope_type" : "type", "one of " + known);
  }
  read_common(fields, scaling);
  if (scaling.type == "mrope" && scaling.sections.empty()) {
    fields.refuse("mrope_section", "the pairs of each axis");
  }
  const auto sum = std::accumulate(scaling.sections.begin(), scaling.sections.end(), int64_t{0});
  if (!scaling.sections.empty() && context.pairs > 0 && sum != context.pairs) {
    fields.refuse("mrope_section",
                  "pairs of each axis, " + std::to_string(context.pairs) + " in all");
  }
  ScalingReader state{fields, context, scaling};
  reader->second(state);
  if (context.from_file) say_idle(fields, scaling);
  refuse_unknown(fields, where);
  return scaling;
}

json scaling_of_words(const std::string& words, const std::string& where) {
  const size_t star = words.find('*');
  json object = {{"rope_type", words.substr(0, star)}};
  if (star == std::string::npos) return object;
  double factor = 0;
  const char* end = words.data() + words.size();
  const auto [stop, error] = std::from_chars(words.data() + star + 1, end, factor);
  if (error != std::errc{} || stop != end || !std::isfinite(factor)) {
    fail(where + ": expected a type and a factor as in yarn*8, but got \"" + words + "\"");
  }
  object["factor"] = factor;
  return object;
}

Stretch stretch_of(const RopeScaling& scaling, int64_t length) {
  if (const auto* dynamic = std::get_if<DynamicStretch>(&scaling.stretch)) {
    return stretch_at(*dynamic, length);
  }
  return std::get<Stretch>(scaling.stretch);
}

json scaling_object(const RopeConfig& config) {
  const RopeScaling& scaling = config.scaling;
  json object = std::visit(
      [&](const auto& stretch) {
        std::string type = scaling.type == "su" ? "longrope" : scaling.type;
        return words(stretch, type);
      },
      scaling.stretch);
  if (!scaling.sections.empty()) {
    std::vector<int64_t> sections = scaling.sections;
    if (scaling.plane_first) std::ranges::rotate(sections, sections.begin() + 1);
    object["mrope_section"] = sections;
    if (scaling.interleaved_sections) object["mrope_interleaved"] = true;
  }
  if (scaling.query_scale.law == QueryLaw::kMinistral) {
    object["llama_4_scaling_beta"] = scaling.query_scale.strength;
  }
  return object;
}

}  // namespace sextant
