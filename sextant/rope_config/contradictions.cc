// Fields are compared with the family's code, with the model's other objects and with a list of
// known keys. A key that nobody reads and that resembles one about positions is an error.
#include "sextant/rope_config/contradictions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "sextant/base/error.h"
#include "sextant/base/nearest.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/layers.h"

namespace sextant {
namespace {

using nlohmann::json;

constexpr std::array kRotaryFields = {"rope_theta",
                                      "rotary_emb_base",
                                      "rope_parameters",
                                      "rope_scaling",
                                      "rope_local_base_freq",
                                      "partial_rotary_factor",
                                      "original_max_position_embeddings"};

bool says(const json& object, const char* name) {
  const json value = object.value(name, json());
  return !value.is_null() && !(value.is_object() && value.empty());
}

std::string field(const std::string& name, const json& value) { return name + " " + shown(value); }

// A field that names the kind of positions; empty if there is none.
std::string named_rotation(const json& config) {
  const json kind = config.value("position_embedding_type", json());
  if (kind == json("rotary") || kind == json("rope")) return field("position_embedding_type", kind);
  const json attention = config.value("attn_config", json());
  if (!attention.is_object() || attention.value("rope", json()) != json(true)) return "";
  std::string said = "attn_config.rope true";
  for (const auto& item : attention.items()) {
    const bool unread = item.key().starts_with("rope_") && item.key() != "rope_theta";
    if (unread) said += ", attn_config." + field(item.key(), item.value()) + " (not read)";
  }
  return said;
}

std::string numbers_of_rotation(const json& config) {
  for (const char* name : {"rope_theta", "rotary_emb_base", "rope_parameters", "rope_scaling"}) {
    if (says(config, name)) return field(name, config.at(name));
  }
  return "";
}

std::string code_of(const Family& family, const std::string& type) {
  return "model_type is " + shown(type) + ", whose code rotates nothing (" + family.instead + "; " +
         family.origin() + ", " + family.source + ")";
}

// Whether both objects have the same value of a field, at the top or in rope_parameters.
bool agree(const json& outer, const json& inner, const std::string& name) {
  if (outer.at(name) == inner.value(name, json())) return true;
  const json parameters = inner.value("rope_parameters", json());
  return parameters.is_object() && outer.at(name) == parameters.value(name, json());
}

void say_option(ModelFields& fields, const std::string& option, double value,
                const std::string& name, const json& of_file) {
  if (value <= 0 || !of_file.is_number() || of_file.get<double>() == value) return;
  const bool whole = value < 1e15 && value == std::floor(value);
  fields.say(option + " " +
             (whole ? std::to_string(static_cast<int64_t>(value)) : json(value).dump()) +
             " is taken in place of the file's " + field(name, of_file));
}

bool about_positions(const std::string& key) {
  return key.starts_with("rope_") || key.starts_with("rotary") ||
         key.find("_rope") != std::string::npos || key.find("rotary_") != std::string::npos ||
         key.find("head_dim") != std::string::npos;
}

const std::set<std::string>& known() {
  static const std::set<std::string> all = {
      "rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq", "rope_interleave",
      "rope_interleaved", "rope_traditional", "rope_pct", "rope_embedding_base",
      "global_rope_theta", "local_rope_theta", "swa_rope_theta", "qk_rope_head_dim",
      "no_rope_layers", "no_rope_layer_interval", "layer_rope_theta", "use_mrope", "use_rope",
      "rotary_emb_base", "rotary_pct", "rotary_dim", "rotary_emb_fraction", "partial_rotary_factor",
      "partial_rotary_factors", "rotary_emb_interleaved", "rotary_scaling_factor",
      // sizes: of values, of unrotated channels, of indexers and linear attention
      "head_dim", "attention_head_dim", "global_head_dim", "swa_head_dim", "qk_nope_head_dim",
      "qk_head_dim", "v_head_dim", "swa_v_head_dim", "index_head_dim", "linear_key_head_dim",
      "linear_value_head_dim", "linear_head_dim", "mamba_head_dim", "cross_head_dim",
      // FastDeploy's: positions have three numbers each, which are equal in a text
      "rope_3d",
      // fields of parts other than the language model's attention
      "indexer_rope_interleave", "rotary_emb_scale_base"};
  return all;
}

bool mentions(const std::vector<std::string>& expressions, const std::string& key) {
  return std::ranges::any_of(expressions, [&](const std::string& expression) {
    return expression.find(key) != std::string::npos;
  });
}

// A switch of precision or of a kernel, which changes no frequency: OLMo's and LLaDA's
// rope_full_precision, rope_dtype, fused_rotary.
bool only_rounds(const std::string& key, const json& value) {
  if (!value.is_boolean() && !value.is_string()) return false;
  constexpr std::array kWords = {"precision", "fp32",  "fp16",   "bf16",  "float32", "float16",
                                 "dtype",     "fused", "fusion", "flash", "upcast"};
  return std::ranges::any_of(kWords,
                             [&](const char* word) { return key.find(word) != std::string::npos; });
}

bool known_to(const Family& family, const std::string& key) {
  for (const auto* list : {&family.ignores, &family.unrelated}) {
    if (std::ranges::find(*list, key) != list->end()) return true;
  }
  if (family.defaults.contains(key)) return true;
  for (const auto& [canonical, own] : family.names) {
    if (own == key) return true;
  }
  for (const auto* remarks : {&family.notes, &family.warnings}) {
    for (const FamilyRemark& remark : *remarks) {
      if (mentions({remark.when}, key)) return true;
    }
  }
  return mentions(
      {family.rotates, family.layer_types, family.kind, family.base, family.part, family.head_dim,
       family.rotary_dim, family.scaled, family.window, family.chunk, family.both_sides,
       family.softmax_scale, family.scales_scores, family.pairing, family.first_channel},
      key);
}

// Numbers that multiply or replace a base or a part rank first, switches last.
int rank(const std::string& key, const json& value) {
  int points = 0;
  for (const char* word : {"ratio", "theta", "base", "factor", "scal", "freq"}) {
    if (key.find(word) != std::string::npos) points -= 4;
  }
  if (value.is_number()) points -= 2;
  if (value.is_boolean() || value.is_string()) points += 2;
  if (key.find("rope") == std::string::npos && key.find("rotary") == std::string::npos) points += 8;
  return points;
}

// The known name that a key may misspell; empty if there is none.
std::string resembled(const std::string& key) {
  constexpr size_t kMostEdits = 2;
  const std::string start = key.substr(0, 40);
  const auto nearest = std::ranges::min_element(
      known(), {}, [&](const std::string& name) { return edit_distance(start, name); });
  return edit_distance(start, *nearest) <= kMostEdits ? *nearest : "";
}

}  // namespace

std::optional<StatedPositions> stated_positions(const json& config, const Family& family,
                                                const std::string& type) {
  if (family.instead.find("no text positions") != std::string::npos) return {};
  const std::string named = named_rotation(config), numbers = numbers_of_rotation(config);
  if (!named.empty() || !numbers.empty()) {
    const std::string said =
        code_of(family, type) + ", and the file says " + (named.empty() ? numbers : named);
    // Code of models without rotation ignores its parameters, and files of unrelated models are
    // most often mistaken for models that add vectors to the input.
    const bool absolute = config.value("position_embedding_type", json()) == json("absolute");
    const bool added = family.instead == "learned" || family.instead == "sinusoidal";
    if (named.empty() && (!added || absolute)) {
      return StatedPositions{false, family.instead, said + ", which that code does not read"};
    }
    return StatedPositions{
        true, "",
        said + ": it is explained as another model, by the general meaning of its fields"};
  }
  const std::string other = other_positions(config);
  if (other.empty() || other == family.instead) return {};
  return StatedPositions{false, other,
                         code_of(family, type) + ", and the file says " + other +
                             ", which is taken: its code is another"};
}

void say_other_places(const json& config, const LanguageModel& model, RopeConfig& first) {
  std::string said;
  const auto add = [&](const std::string& name, const json& value) {
    said += (said.empty() ? "" : ", ") + field(name, value);
  };
  if (!model.place.empty()) {
    const json& inner = *at_place(config, model.place);
    for (const char* name : kRotaryFields) {
      if (says(config, name) && !agree(config, inner, name)) add(name, config.at(name));
    }
    if (said.empty()) return;
    first.scaling.warnings.push_back(said + " outside " + shown(model.place) +
                                     ": not read, as the language model's fields are those in it");
    return;
  }
  for (const char* place : {"text_config", "llm_config", "language_config"}) {
    const json inner = config.value(place, json());
    if (!inner.is_object()) continue;
    for (const char* name : kRotaryFields) {
      if (says(inner, name) && !agree(inner, config, name)) {
        add(std::string(place) + "." + name, inner.at(name));
      }
    }
  }
  if (said.empty()) return;
  first.scaling.warnings.push_back(
      said + ": not read, as the fields at the top of the file are taken for the language model's");
}

void say_options(ModelFields& fields, const RopeParameters& parameters) {
  const Overrides& options = fields.overrides();
  if (options.only_missing) return;
  const json& object = parameters.object;
  if (parameters.nested) {
    for (const auto& [option, value] :
         {std::pair{"--base", options.base}, {"--local-base", options.local_base}}) {
      if (value <= 0) continue;
      for (const auto& item : object.items()) {
        if (!item.value().is_object() || !says(item.value(), "rope_theta")) continue;
        fields.say(std::string(option) + " has no effect on layers whose own parameters say " +
                   "rope_theta, such as " + shown(item.key()));
        break;
      }
    }
  } else {
    const bool inside = says(object, "rope_theta");
    const json base = inside                      ? object.at("rope_theta")
                      : fields.says("rope_theta") ? fields.value("rope_theta")
                                                  : json();
    say_option(fields, "--base", options.base, "rope_theta", base);
  }
  if (fields.says("rope_local_base_freq")) {
    say_option(fields, "--local-base", options.local_base, "rope_local_base_freq",
               fields.value("rope_local_base_freq"));
  }
  const auto width = static_cast<double>(options.head_dim);
  if (fields.says("head_dim")) {
    say_option(fields, "--head-dim", width, "head_dim", fields.value("head_dim"));
    return;
  }
  const json hidden = fields.value("hidden_size"), heads = fields.value("num_attention_heads");
  if (!fields.says("hidden_size") || !hidden.is_number_integer() || !heads.is_number_integer()) {
    return;
  }
  if (heads.get<int64_t>() <= 0) return;
  say_option(fields, "--head-dim", width, "hidden_size / num_attention_heads",
             hidden.get<int64_t>() / heads.get<int64_t>());
}

void refuse_unknown_fields(const json& config, const Family* family, const std::string& where) {
  constexpr size_t kMost = 12;
  std::vector<std::string> unknown;
  for (const auto& item : config.items()) {
    const std::string& key = item.key();
    if (!about_positions(key) || item.value().is_null() || known().contains(key)) continue;
    if (only_rounds(key, item.value())) continue;
    if (family != nullptr && known_to(*family, key)) continue;
    if (key == "rope_type" && item.value() == json("original")) continue;  // Grok-2: no scaling
    unknown.push_back(key);
  }
  if (unknown.empty()) return;
  std::ranges::stable_sort(unknown, [&](const std::string& a, const std::string& b) {
    return rank(a, config.at(a)) < rank(b, config.at(b));
  });
  std::string all;
  for (size_t k = 0; k < std::min(unknown.size(), kMost); ++k) {
    all += (k == 0 ? "" : ", ") + shown(unknown[k], 40) + ": " + shown(config.at(unknown[k]), 40);
    const std::string name = resembled(unknown[k]);
    if (!name.empty()) all += " (or is it " + name + "?)";
  }
  fail(where + ": " + shown(unknown[0]) +
       ": expected no field about rotary positions that sextant does not know, but got " +
       (unknown.size() == 1 ? "one: " : std::to_string(unknown.size()) + ": ") + all);
}

}  // namespace sextant
