// Both schemas, rope_scaling and rope_parameters, become one object, which is compared with the
// fields beside it. Fields that the code does not read are removed with a warning.
#include "sextant/rope_config/parameters.h"

#include <algorithm>

#include "sextant/base/error.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/foreign_fields.h"

namespace sextant {
namespace {

using nlohmann::json;

const json kPlain = {{"rope_type", "default"}};

json typed(json object) {
  if (!object.contains("rope_type") && !object.contains("type")) object["rope_type"] = "default";
  return object;
}

const json* object_of(ModelFields& fields, const char* name) {
  const auto found = fields.config().find(name);
  if (found == fields.config().end() || found->is_null()) return nullptr;
  if (!found->is_object()) fields.bad(name, "an object", *found);
  return &*found;
}

std::string name_of(const std::string& key) { return key == "type" ? "rope_type" : key; }

json renamed(const json& object) {
  json result = json::object();
  for (const auto& item : object.items()) result[name_of(item.key())] = item.value();
  return result;
}

// Files may have both schemas on purpose, and both should agree. If they differ, transformers uses
// the old one only.
void compare(ModelFields& fields, const json& parameters, const json& scaling) {
  const json in_new = renamed(typed(parameters)), in_old = renamed(typed(scaling));
  std::string differences;
  const auto add = [&](const std::string& key, const json& old, const json& other) {
    const auto words = [](const json& value) { return value.is_null() ? "missing" : shown(value); };
    differences += (differences.empty() ? "" : "; ") + shown(key) + " is " + words(old) +
                   " in rope_scaling and " + words(other) + " in rope_parameters";
  };
  for (const auto& item : in_old.items()) {
    const json other = in_new.value(item.key(), json());
    if (other != item.value()) add(item.key(), item.value(), other);
  }
  for (const auto& item : in_new.items()) {
    if (in_old.contains(item.key()) || item.value().is_null()) continue;
    if (fields.value(item.key()) != item.value()) add(item.key(), json(), item.value());
  }
  if (differences.empty()) return;
  fields.say(differences + "; rope_scaling is taken. " +
             engine_fact("transformers.rope_scaling_first") +
             "; keep the one that the model was trained with");
}

// rope_scaling in place of rope_parameters. For unknown code, a base that only rope_parameters has
// is kept.
json replacing(ModelFields& fields, const json& parameters, const json& scaling) {
  compare(fields, parameters, scaling);
  json object = scaling;
  for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
    const bool elsewhere = object.contains(key) || fields.says(key);
    if (fields.family() == nullptr && !elsewhere && parameters.contains(key)) {
      object[key] = parameters.at(key);
    }
  }
  return object;
}

// Qwen's first models.
json of_qwen(ModelFields& fields) {
  const json dynamic = fields.value("use_dynamic_ntk");
  if (!dynamic.is_boolean() || !dynamic.get<bool>()) return kPlain;
  const auto length = fields.integer("seq_length", 2, kLongestSequence);
  if (!length) fields.bad("seq_length", "the length that the model was trained with", json());
  return {{"rope_type", "qwen-ntk"}, {"original_max_position_embeddings", *length}};
}

// Nomic's first models: dynamic NTK from the training length.
json of_nomic(ModelFields& fields) {
  const auto factor = fields.number("rotary_scaling_factor", 1, 1e9);
  if (!factor || *factor == 1) return of_qwen(fields);
  const auto length = fields.integer("max_trained_positions", 1, kLongestSequence);
  if (!length) {
    fields.bad("max_trained_positions", "the length that the model was trained with", json());
  }
  return {
      {"rope_type", "dynamic"}, {"factor", *factor}, {"original_max_position_embeddings", *length}};
}

bool is_nested(const json& parameters) {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const json& value) { return value.is_object(); });
}

// Compares rope_theta and partial_rotary_factor beside the parameters with those within.
void compare_outside(ModelFields& fields, const json& object, const std::string& where) {
  for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
    if (!object.contains(key) || !fields.says(key)) continue;
    const json outside = fields.value(key);
    if (outside == object[key] || outside.is_array() || !outside.is_number()) continue;
    fields.say(std::string(key) + " is " + shown(outside) + " beside " + where + " and " +
               shown(object[key]) +
               " in it; the latter is taken, as transformers 5 does, while "
               "version 4 and engines that look for the former take " +
               shown(outside) + ": keep the one that the model was trained with");
  }
}

// Removes a field that the family's code does not read, and warns about it unless it changes
// nothing.
void say_if_ignored(ModelFields& fields, json& object, const std::string& name) {
  const auto matters = [&](const json& value) {
    return !value.is_null() && value != json(false) &&
           !(name == "partial_rotary_factor" && value == json(1));
  };
  bool there = fields.config().contains(name) && matters(fields.config().at(name));
  const auto take_from = [&](json& from) {
    if (!from.is_object() || !from.contains(name)) return;
    there = there || matters(from.at(name));
    from.erase(name);
  };
  take_from(object);
  for (json& inner : object) take_from(inner);
  if (!there) return;
  const std::string of = " (" + fields.family()->origin() + ", " + fields.family()->source + ")";
  const json type = object.value("rope_type", object.value("type", json("default")));
  const bool generic = name == "partial_rotary_factor" && type != json("default");
  fields.say(name + " is in the file, and this type's own code does not read it" + of +
             (generic ? ". " + engine_fact("transformers.partial_scaled") : ""));
}

// Replaces a rope_type that the family's code treats as another.
void rename_type(ModelFields& fields, RopeParameters& parameters) {
  json& object = parameters.object;
  if (fields.family() == nullptr) return;
  for (const char* key : {"rope_type", "type"}) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) continue;
    const auto other = fields.family()->scaling_types.find(found->get<std::string>());
    if (other == fields.family()->scaling_types.end()) continue;
    const std::string words = std::string(key) + " " + shown(*found) +
                              ", which this type's code takes for " + shown(other->second);
    parameters.where += " (" + words + ")";
    fields.say(words + " (" + fields.family()->origin() + ", " + fields.family()->source + ")");
    *found = other->second;
  }
}

// Warns about fields beside the scaling that the code reads only within it.
void say_unread(ModelFields& fields, const json& object) {
  if (fields.family() == nullptr) return;
  for (const std::string& name : fields.family()->only_inside) {
    const json outside = fields.config().value(name, json());
    const json taken = object.contains(name) ? object.at(name) : fields.value(name);
    if (outside.is_null() || outside == taken) continue;
    fields.say(name + " is " + shown(outside) +
               " beside the scaling, where this type's code does " + "not read it (" +
               fields.family()->origin() + ", " + fields.family()->source + "); " + shown(taken) +
               " is taken");
  }
}

}  // namespace

RopeParameters rope_parameters(ModelFields& fields) {
  const json* parameters = object_of(fields, "rope_parameters");
  const json* scaling = object_of(fields, "rope_scaling");
  if (scaling != nullptr && scaling->empty()) scaling = nullptr;
  json replaced;
  if (parameters != nullptr && scaling != nullptr) {
    if (is_nested(*parameters)) {
      if (*parameters != *scaling) {
        fail(fields.where() +
             ": rope_scaling: expected none beside rope_parameters by kind of layer, but got one");
      }
    } else {
      replaced = replacing(fields, *parameters, *scaling);
      scaling = &replaced;
      parameters = nullptr;
    }
  }
  RopeParameters result;
  json of_code;
  if (parameters == nullptr && scaling == nullptr) {
    of_code = fields.value("rope_parameters");
    if (of_code.is_object()) parameters = &of_code;
  }
  const bool old = parameters == nullptr;
  result.where = fields.where() + (old ? ": rope_scaling" : ": rope_parameters");
  if (old) {
    result.object = scaling != nullptr ? *scaling : of_nomic(fields);
    // Some files have parameters by kind of layer under the old name.
    result.nested = scaling != nullptr && is_nested(*scaling);
  } else {
    result.nested = is_nested(*parameters);
    result.object = *parameters;
    if (!result.nested) result.object = typed(result.object.empty() ? kPlain : result.object);
  }
  rename_type(fields, result);
  if (fields.family() != nullptr) {
    for (const std::string& ignored : fields.family()->ignores) {
      say_if_ignored(fields, result.object, ignored);
    }
  }
  if (!result.nested) {
    say_unread(fields, result.object);
    compare_outside(fields, result.object, old ? "rope_scaling" : "rope_parameters");
  }
  return result;
}

Lengths lengths_of(ModelFields& fields) {
  Lengths lengths;
  lengths.most = fields.integer("max_position_embeddings", 1, kLongestSequence).value_or(0);
  lengths.original =
      fields.integer("original_max_position_embeddings", 1, kLongestSequence).value_or(0);
  lengths.original_from =
      fields.says("original_max_position_embeddings") || fields.family() == nullptr
          ? "beside it"
          : "in its type's code (" + fields.family()->origin() + ")";
  return lengths;
}

void read_dual_chunks(ModelFields& fields, std::vector<RopeConfig>& ropes) {
  const json* dual = object_of(fields, "dual_chunk_attention_config");
  if (dual == nullptr) return;
  const ForeignFields own(*dual, fields.where() + ": dual_chunk_attention_config");
  const int64_t chunk = own.integer("chunk_size", 1, kLongestSequence);
  const int64_t local = own.integer("local_size", 0, chunk - 1);
  const auto original =
      own.optional_integer("original_max_position_embeddings", 1, kLongestSequence);
  for (RopeConfig& rope : ropes) {
    rope.dual_chunk = chunk;
    if (original && rope.scaling.original_length == 0) rope.scaling.original_length = *original;
    rope.scaling.warnings.push_back(
        "dual chunk attention: keys rotate by their place in chunks of " +
        std::to_string(chunk - local) + ", and queries so that no distance is beyond " +
        std::to_string(chunk) +
        " (the method dual-chunk). An engine that leaves it out, as llama.cpp and Hugging Face do, "
        "runs plain RoPE beyond what was trained");
  }
}

}  // namespace sextant
