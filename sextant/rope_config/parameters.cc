#include "sextant/rope_config/parameters.h"

#include <algorithm>

#include "sextant/error.h"
#include "sextant/rope_config/fields.h"
#include "sextant/rope_config/shown.h"

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

// Both schemas are written on purpose now; where they say the same key, it must be alike.
void compare(const json& parameters, const json& scaling, const std::string& where) {
  const auto key_of = [](const std::string& key) { return key == "type" ? "rope_type" : key; };
  for (const auto& item : scaling.items()) {
    const std::string key = key_of(item.key());
    const auto same = std::find_if(parameters.items().begin(), parameters.items().end(),
                                   [&](const auto& other) { return key_of(other.key()) == key; });
    if (same == parameters.items().end()) {
      fail(where + ": rope_scaling." + shown(key) +
           ": expected it in rope_parameters, too, or only one of the two, but got " +
           shown(item.value()));
    }
    if (same.value() != item.value()) {
      fail(where + ": rope_scaling." + shown(key) + ": expected what rope_parameters has, " +
           shown(same.value()) + ", but got " + shown(item.value()));
    }
  }
}

// Qwen's first models.
json of_qwen(ModelFields& fields) {
  const json dynamic = fields.value("use_dynamic_ntk");
  if (!dynamic.is_boolean() || !dynamic.get<bool>()) return kPlain;
  const auto length = fields.integer("seq_length", 2, kLongestSequence);
  if (!length) fields.bad("seq_length", "the length that the model was trained with", json());
  return {{"rope_type", "qwen-ntk"}, {"original_max_position_embeddings", *length}};
}

// Nomic's first models: dynamic NTK over the length that they were trained with.
json of_nomic(ModelFields& fields) {
  const auto factor = fields.number("rotary_scaling_factor", 1, 1e9);
  if (!factor) return of_qwen(fields);
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

// rope_theta and partial_rotary_factor stand beside the parameters and among them.
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

// A field that the family's code does not read is taken out, and said to be there unless it changes
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
  fields.say(name + " is in the file, and this type's code does not read it (" +
             fields.family()->origin() + ", " + fields.family()->source + ")");
}

}  // namespace

RopeParameters rope_parameters(ModelFields& fields) {
  const json* parameters = object_of(fields, "rope_parameters");
  const json* scaling = object_of(fields, "rope_scaling");
  if (parameters != nullptr && scaling != nullptr) {
    if (is_nested(*parameters)) {
      if (*parameters != *scaling) {
        fail(fields.where() +
             ": rope_scaling: expected none beside rope_parameters by kind of layer, but got one");
      }
    } else {
      compare(*parameters, *scaling, fields.where());
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
    // Some files have parameters by kind under the old name.
    result.nested = scaling != nullptr && is_nested(*scaling);
  } else {
    result.nested = is_nested(*parameters);
    result.object = *parameters;
    if (!result.nested) result.object = typed(result.object.empty() ? kPlain : result.object);
  }
  if (fields.family() != nullptr) {
    for (const std::string& ignored : fields.family()->ignores) {
      say_if_ignored(fields, result.object, ignored);
    }
  }
  if (!result.nested) {
    compare_outside(fields, result.object, old ? "rope_scaling" : "rope_parameters");
  }
  return result;
}

Lengths lengths_of(ModelFields& fields) {
  Lengths lengths;
  lengths.most = fields.integer("max_position_embeddings", 1, kLongestSequence).value_or(0);
  lengths.original =
      fields.integer("original_max_position_embeddings", 1, kLongestSequence).value_or(0);
  return lengths;
}

void read_dual_chunks(ModelFields& fields, std::vector<RopeConfig>& ropes) {
  const json* dual = object_of(fields, "dual_chunk_attention_config");
  if (dual == nullptr) return;
  Fields own(*dual, fields.where() + ": dual_chunk_attention_config");
  const int64_t chunk = own.needed_integer("chunk_size", 1, kLongestSequence);
  const int64_t local = own.needed_integer("local_size", 0, chunk - 1);
  const auto original = own.integer("original_max_position_embeddings", 1, kLongestSequence);
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
