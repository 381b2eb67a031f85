// The family's table says where the language model's object is. For unknown families the only
// object with sizes and positions is taken, and several are an error.
#include "sextant/rope_config/language_model.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/rope_config/families/family.h"
#include "sextant/rope_config/foreign_fields.h"

namespace sextant {
namespace {

using nlohmann::json;

constexpr int kDeepestObject = 4;  // nesting depth of objects

// Names of the language model's object in families without a row in the table, the likeliest first.
constexpr std::array kUsualPlaces = {"text_config",
                                     "llm_config",
                                     "language_config",
                                     "language_model",
                                     "thinker_config",
                                     "lm_config",
                                     "llm",
                                     "language_model_config",
                                     "text_model_config",
                                     "decoder_config",
                                     "decoder",
                                     "generator_config"};

std::string type_of(const json& config) {
  return ForeignFields(config, "config.json").optional_string("model_type").value_or("");
}

bool has_any(const json& config, std::initializer_list<const char*> names) {
  return std::ranges::any_of(
      names, [&](const char* name) { return config.contains(name) && !config.at(name).is_null(); });
}

bool says_positions(const json& config) {
  return has_any(config, {"rope_theta", "rope_parameters", "rope_scaling", "rotary_emb_base",
                          "rotary_dim", "rotary_pct", "rope_ratio"});
}

bool has_sizes(const json& config) {
  return has_any(config, {"hidden_size", "n_embd", "d_model", "head_dim"});
}

bool looks_like_language_model(const std::string& name, const json& config) {
  for (const char* other : {"vision", "audio", "image", "video", "speech", "visual", "vit"}) {
    if (name.find(other) != std::string::npos) return false;
  }
  return has_sizes(config) && (says_positions(config) || has_any(config, {"vocab_size"}));
}

bool has_object(const json& config, const std::string& place) {
  const json* found = at_place(config, place);
  return found != nullptr && found->is_object();
}

std::vector<std::string> candidates(const json& config) {
  std::vector<std::string> found;
  for (const auto& item : config.items()) {
    const std::string& key = item.key();
    if (key.empty() || key.find('.') != std::string::npos) continue;  // dots separate names
    if (item.value().is_object() && looks_like_language_model(key, item.value())) {
      found.push_back(key);
    }
  }
  return found;
}

std::string only_candidate(const json& config) {
  for (const char* name : kUsualPlaces) {
    if (has_object(config, name)) return name;
  }
  const std::vector<std::string> found = candidates(config);
  if (found.size() <= 1) return found.empty() ? "" : found[0];
  std::string all;
  for (const std::string& name : found) {
    all += (all.empty() ? "" : ", ") + shown(name);
  }
  fail("config.json: expected one object that holds a language model, but got " + all +
       "; give the one that is meant, as a file of its own");
}

// The model_type of a language model whose object has none, from the family of the whole model.
std::string type_of_part(const std::string& whole) {
  const Family* family = find_family(whole);
  if (family != nullptr && family->defaults.contains("model_type")) {
    const json& of_code = family->defaults.at("model_type");
    if (of_code.is_string()) return of_code.get<std::string>();
  }
  return find_family(whole + "_text") != nullptr ? whole + "_text" : "";
}

LanguageModel found_in(const json& config, const std::string& type, const std::string& place,
                       int depth) {
  LanguageModel here{&config, place, type};
  if (depth >= kDeepestObject) return here;
  const auto within = [&](const std::string& name) {
    const json& inner = *at_place(config, name);
    std::string own = type_of(inner);
    if (own.empty()) own = type_of_part(type);
    return found_in(inner, own, place.empty() ? name : place + "." + name, depth + 1);
  };
  const Family* family = find_family(type);
  if (family != nullptr) {
    for (const std::string& name : family->language_model) {
      if (has_object(config, name)) return within(name);
    }
    if (family->language_model.empty()) return here;
  }
  if (has_any(config, {"rope_theta", "rope_parameters"})) return here;
  if (says_positions(config) && has_sizes(config)) return here;
  const std::string name = only_candidate(config);
  return name.empty() ? here : within(name);
}

}  // namespace

const json* at_place(const json& config, std::string_view place) {
  const json* at = &config;
  while (!place.empty()) {
    const std::string_view part = place.substr(0, place.find('.'));
    place.remove_prefix(std::min(part.size() + 1, place.size()));
    if (!at->is_object()) return nullptr;
    const auto found = at->find(part);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

LanguageModel find_language_model(const json& config) {
  LanguageModel found = found_in(config, type_of(config), "", 0);
  // Older files have the language model's fields at the top, under the type of the whole model. A
  // family row with a pairing covers such files itself.
  const Family* family = find_family(found.model_type);
  const bool wraps = family != nullptr && !family->language_model.empty();
  if (wraps && family->pairing.empty()) {
    const std::string part = type_of_part(found.model_type);
    if (!part.empty()) found.model_type = part;
  }
  return found;
}

}  // namespace sextant
