// Writes a configuration in the fields of transformers 4 or 5; read_hugging_face.cc reads them.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/rope_config/families/family.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/language_model.h"

namespace sextant {
namespace {

using nlohmann::json;

bool known_to_hugging_face(const json& object) {
  for (const char* type :
       {"default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"}) {
    if (object.at("rope_type") == type) return !object.contains("ramp");
  }
  return false;
}

// The scaling's fields in Hugging Face's form, which has NTK only as another base.
json object_of(const RopeConfig& config) {
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  if (fixed && std::holds_alternative<Ntk>(*fixed)) {
    fail(
        "convert: ntk: expected a scaling that Hugging Face has, but it has none; write its base " +
        std::to_string(config.base) + " * factor^(R / (R - 2)) into rope_theta");
  }
  json object = scaling_object(config);
  if (!known_to_hugging_face(object)) {
    fail("convert: " + config.scaling.type +
         ": expected a scaling that Hugging Face has a name for");
  }
  return object;
}

// R of D channels as a part from which int(D * part), the formula of all readers, gives R again: it
// would lose a channel if the quotient was rounded down.
double part_of(int64_t some, int64_t all) {
  const auto whole = static_cast<double>(all);
  double part = static_cast<double>(some) / whole;
  if (static_cast<int64_t>(whole * part) < some) part = std::nextafter(part, 2.0);
  return part;
}

// Whether some channels do not rotate and do not belong to the frequencies either.
bool is_partial(const RopeConfig& config) {
  return config.rotary_dim != config.head_dim && config.scaling.type != "proportional";
}

constexpr std::array kBases = {"rope_theta", "rotary_emb_base", "rope_embedding_base",
                               "global_rope_theta"};
constexpr std::array kLocalBases = {"rope_local_base_freq", "local_rope_theta", "swa_rope_theta"};

// The first of several names for one field that a configuration has; the first name if it has none.
template <size_t n>
std::string first_key(const json& model, const std::array<const char*, n>& names) {
  for (const char* name : names) {
    if (model.contains(name)) return name;
  }
  return names[0];
}

json& language_model(json& fields) {
  return const_cast<json&>(*at_place(fields, find_language_model(fields).place));
}

bool has_objects(const json& model, const char* key) {
  const json object = model.value(key, json());
  return object.is_object() &&
         std::any_of(object.begin(), object.end(), [](const json& x) { return x.is_object(); });
}

// Groups by the key of their parameters if the file has them by kind of layer or needs them by
// kind; otherwise one group without a key. `model`: the original configuration.
std::vector<RopeConfig> by_key(const json& model, const std::vector<RopeConfig>& configs) {
  std::vector<RopeConfig> distinct = distinct_rotations(configs);
  if (distinct.empty()) {
    fail("convert: model_type: expected a model that rotates queries and keys, but got " +
         (configs.at(0).model_type.empty() ? "one that does not"
                                           : shown(configs[0].model_type) + ", which does not"));
  }
  const bool nested = has_objects(model, "rope_parameters") || has_objects(model, "rope_scaling");
  std::vector<RopeConfig> keyed;
  for (RopeConfig config : configs) {
    if (!config.rotates) continue;
    if (config.parameters.empty()) config.parameters = config.layers;
    const auto same = std::find_if(keyed.begin(), keyed.end(), [&](const RopeConfig& other) {
      return other.parameters == config.parameters;
    });
    if (same == keyed.end()) {
      keyed.push_back(config);
    } else if (!rotate_alike(*same, config)) {
      keyed.clear();  // layers of one kind differ: the file has lists by layer
      break;
    }
  }
  const bool can = !keyed.empty() && !keyed[0].parameters.empty();
  if (can && (nested || distinct.size() > 1)) return keyed;
  distinct.resize(1);
  distinct[0].parameters.clear();
  return distinct;
}

// Kinds with null parameters: their layers do not rotate.
std::vector<std::string> kinds_without_rotation(const json& model) {
  std::vector<std::string> kinds;
  const json object = model.value("rope_parameters", json());
  if (!has_objects(model, "rope_parameters")) return kinds;
  for (const auto& item : object.items()) {
    if (item.value().is_null()) kinds.push_back(item.key());
  }
  return kinds;
}

bool says_head_dim(const json& model, int64_t head_dim) {
  for (const auto& [width, heads] :
       {std::pair{"hidden_size", "num_attention_heads"}, {"n_embd", "n_head"}}) {
    const json w = model.value(width, json()), h = model.value(heads, json());
    if (w.is_number_integer() && h.is_number_integer() && w == h.get<int64_t>() * head_dim) {
      return true;
    }
  }
  return false;
}

// Writes head sizes if the configuration lacks them. In latent attention the rotated channels also
// have a size, which shows that the scores are scaled.
void write_sizes(json& model, const RopeConfig& config) {
  if (model.contains("qk_rope_head_dim") || says_head_dim(model, config.head_dim)) return;
  if (config.latent || config.scaling.score_factor != 1) {
    model["qk_rope_head_dim"] = config.rotary_dim;
    model["qk_nope_head_dim"] = config.head_dim - config.rotary_dim;
  } else if (!model.contains("head_dim") || config.layers.empty()) {
    model["head_dim"] = config.head_dim;
  }
}

// Gemma 4's fields for windowed layers with another head size.
void write_window_sizes(json& model, const std::vector<RopeConfig>& configs) {
  if (model.contains("global_head_dim") || model.contains("swa_head_dim")) return;
  const auto with_window = [](const RopeConfig& s) { return s.layers == "sliding_attention"; };
  const auto window = std::find_if(configs.begin(), configs.end(), with_window);
  const auto full = std::find_if_not(configs.begin(), configs.end(), with_window);
  if (window == configs.end() || full == configs.end()) return;
  if (window->head_dim == full->head_dim) return;
  model["head_dim"] = window->head_dim;
  model["global_head_dim"] = full->head_dim;
}

// The field that gives the rotated part of all layers; null if there is none.
const char* part_key(const json& model) {
  for (const char* key :
       {"partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_emb_fraction", "rotary_dim"}) {
    if (model.contains(key)) return key;
  }
  return nullptr;
}

void write_5(json& model, const std::vector<RopeConfig>& configs,
             const std::vector<std::string>& without) {
  json parameters = json::object();
  const bool latent = model.contains("qk_rope_head_dim");
  const bool partial = !latent && (part_key(model) != nullptr ||
                                   std::any_of(configs.begin(), configs.end(), is_partial));
  for (const RopeConfig& config : configs) {
    json object = object_of(config);
    object["rope_theta"] = config.base;
    if (partial && config.scaling.type != "proportional") {
      object["partial_rotary_factor"] = part_of(config.rotary_dim, config.head_dim);
    }
    if (config.parameters.empty()) {
      parameters = object;
    } else {
      parameters[config.parameters] = object;
    }
  }
  for (const std::string& kind : without) parameters[kind] = nullptr;
  model["rope_parameters"] = parameters;
}

// transformers 4 has L beside the scaling, and its Phi3Config accepts only these three fields.
json longrope_4(json& model, const RopeConfig& config, json object) {
  const auto& dynamic = std::get<DynamicStretch>(config.scaling.stretch);
  const double gain = std::get<LongRope>(dynamic.stretch).gain;
  const int64_t original = dynamic.original_length;
  json three = {{"type", "longrope"},
                {"short_factor", object.at("short_factor")},
                {"long_factor", object.at("long_factor")}};
  model["original_max_position_embeddings"] = original;
  const double times = static_cast<double>(config.max_length) / static_cast<double>(original);
  if (times >= 1 && longrope_gain(times, original) == gain) return three;
  if (config.model_type.starts_with("phi3")) {
    fail(
        "convert: hf4: attention_factor: expected the one that follows from "
        "max_position_embeddings / original_max_position_embeddings, as Phi-3 takes no other, but "
        "got " +
        json(gain).dump());
  }
  three["attention_factor"] = gain;
  if (times < 1) three["factor"] = dynamic.factor;
  return three;
}

json scaling_4(json& model, const RopeConfig& config) {
  json object = object_of(config);
  const json& type = object.at("rope_type");
  if (config.scaling.query_scale.strength > 0) {
    fail(
        "convert: hf4: llama_4_scaling_beta: expected none, as only version 5 reads it (--as hf5)");
  }
  if (type == "proportional") {
    fail("convert: hf4: proportional: expected a scaling that version 4 has (--as hf5)");
  }
  if (type == "longrope") return longrope_4(model, config, std::move(object));
  return type == "default" && !object.contains("mrope_section") ? json() : object;
}

void write_part_4(json& model, const RopeConfig& config) {
  const char* own = part_key(model);
  if (model.contains("qk_rope_head_dim") || (!own && !is_partial(config))) return;
  const std::string key = own ? own : "partial_rotary_factor";
  if (key == "rotary_dim") {
    model[key] = config.rotary_dim;
  } else {
    model[key] = part_of(config.rotary_dim, config.head_dim);
  }
}

void write_4(json& model, const std::vector<RopeConfig>& configs, const std::string& base,
             const std::string& local_base) {
  const RopeConfig& first = configs[0];
  model[base] = first.base;
  model["rope_scaling"] = scaling_4(model, first);
  write_part_4(model, first);
  if (configs.size() == 1) return;
  const RopeConfig& local = configs[1];
  if (configs.size() > 2 || local.parameters != "sliding_attention" ||
      local.scaling.type != "default") {
    fail("convert: hf4: expected one scaling for all layers, but got " +
         std::to_string(configs.size()) + "; version 5 can say them (--as hf5)");
  }
  if (local.rotary_dim != first.rotary_dim) {
    fail("convert: hf4: partial_rotary_factor: expected one for all layers, but got " +
         std::to_string(first.rotary_dim) + " and " + std::to_string(local.rotary_dim) +
         " channels that rotate; version 5 can say them (--as hf5)");
  }
  model[local_base] = local.base;
}

// Whether the original length is beside the scaling, in the file or in its type's code;
// transformers 5 takes it from there.
bool has_original_beside(const json& model, const std::string& type) {
  const char* key = "original_max_position_embeddings";
  const Family* family = find_family(type);
  return !model.value(key, json()).is_null() ||
         (family != nullptr && family->defaults.contains(key));
}

void write_original_beside(json& model, const RopeConfig& config) {
  const std::string& type = config.scaling.type;
  const bool read = type == "yarn" || type == "llama3" || type == "longrope" || type == "su";
  if (!read || !config.parameters.empty()) return;
  model["original_max_position_embeddings"] = config.scaling.original_length;
}

// The result, read again, must rotate like the original.
void check_result(const json& fields, const std::vector<RopeConfig>& configs, int version) {
  const std::string where = std::string("convert: hf") + (version == 4 ? "4" : "5");
  std::vector<RopeConfig> before = distinct_rotations(configs), after;
  try {
    after = distinct_rotations(read_hugging_face(fields));
  } catch (const Error& error) {
    fail(where + ": the result could not be read again: " + error.what());
  }
  const auto has = [](const std::vector<RopeConfig>& many, const RopeConfig& one) {
    return std::any_of(many.begin(), many.end(),
                       [&](const RopeConfig& other) { return rotate_alike(one, other); });
  };
  for (const RopeConfig& one : before) {
    if (has(after, one) && before.size() == after.size()) continue;
    fail(where + ": " + (one.layers.empty() ? "rope_parameters" : one.layers) +
         ": expected layers that version " + std::to_string(version) +
         " can say, but the result means other frequencies when it is read again");
  }
}

}  // namespace

json write_hugging_face(json fields, const std::vector<RopeConfig>& configs, int version) {
  if (fields.is_null()) fields = json::object();
  json& model = language_model(fields);
  const std::vector<RopeConfig> keyed = by_key(model, configs);
  const std::vector<std::string> without = kinds_without_rotation(model);
  // Version 4's code of some models has its own names for the bases.
  const bool beside = has_original_beside(model, configs.at(0).model_type);
  const std::string base = first_key(model, kBases), local = first_key(model, kLocalBases);
  for (const char* key : kBases) {
    if (!model.value(key, json()).is_array()) model.erase(key);
  }
  for (const char* key : kLocalBases) model.erase(key);
  for (const char* old :
       {"rope_scaling", "rope_parameters", "original_max_position_embeddings", "use_dynamic_ntk"}) {
    model.erase(old);
  }
  if (version == 5 && beside) write_original_beside(model, keyed.at(0));
  const RopeConfig& first = keyed.at(0);
  write_sizes(model, first);
  write_window_sizes(model, keyed);
  if (const int64_t most = declared_length(first)) model["max_position_embeddings"] = most;
  version == 4 ? write_4(model, keyed, base, local) : write_5(model, keyed, without);
  check_result(fields, configs, version);
  return fields;
}

}  // namespace sextant
