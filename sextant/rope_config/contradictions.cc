#include "sextant/rope_config/contradictions.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/rope_config/language_model.h"
#include "sextant/rope_config/other_positions.h"
#include "sextant/rope_config/shown.h"

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

}  // namespace sextant
