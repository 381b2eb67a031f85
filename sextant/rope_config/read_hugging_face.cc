// The family's code gives defaults and its own rules; the fields of config.json are then read for
// each kind of layers, and fields that disagree are warned of.
#include "sextant/rope_config/hugging_face.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sextant/base/error.h"
#include "sextant/rope_config/contradictions.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/families/expression.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/language_model.h"
#include "sextant/rope_config/layers.h"
#include "sextant/rope_config/parameters.h"

namespace sextant {
namespace {

using nlohmann::json;

const std::string kWhere = "config.json";

// HunYuan's alpha gives another base at every length. It is no factor of the length, since the
// models were trained with that base.
void take_alpha(RopeConfig& config) {
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  const auto* ntk = fixed ? std::get_if<Ntk>(fixed) : nullptr;
  if (!ntk || config.rotary_dim <= 2) return;
  const auto dim = static_cast<double>(config.rotary_dim);
  config.base *= std::pow(ntk->factor, dim / (dim - 2));
  config.scaling.warnings.push_back("alpha (HunYuan) makes rope_theta the base " +
                                    json(config.base).dump() +
                                    ", at every length; it says nothing about how far to read");
  config.scaling.type = "default";
  config.scaling.stretch = Stretch{};
}

int64_t channels_of(const LayerFacts& facts, std::optional<double> part) {
  const double all = static_cast<double>(facts.head_dim);
  const int64_t dim =
      facts.rotary_dim ? *facts.rotary_dim : static_cast<int64_t>(all * part.value_or(1));
  if (dim < 2 || dim % 2 != 0) {
    fail(kWhere + ": " +
         (part.value_or(1) != 1 && !facts.rotary_dim ? "partial_rotary_factor" : "head_dim") +
         ": expected an even number of channels that rotate, but got " + std::to_string(dim));
  }
  if (dim > facts.head_dim) {
    fail(kWhere + ": rotary_dim: expected at most the " + std::to_string(facts.head_dim) +
         " channels of a head, but got " + std::to_string(dim));
  }
  return dim;
}

std::optional<double> part_in(const json& object) {
  const auto found = object.find("partial_rotary_factor");
  if (found == object.end() || !found->is_number()) return {};
  const auto part = found->get<double>();
  return part > 0 && part <= 1 ? std::optional(part) : std::nullopt;
}

// Adds the defaults of the family's code for missing fields.
void add_defaults_of_code(const Family* family, json& object) {
  if (family == nullptr || object.value("rope_type", json()) == json("default")) return;
  for (const auto& [name, value] : family->scaling_defaults) {
    if (!object.contains(name)) object[name] = value;
  }
}

// Adds M-RoPE's sections if the file has none, and their order, as each code has one alone.
void add_sections_of_code(ModelFields& fields, int64_t pairs, json& object) {
  if (fields.family() == nullptr || !fields.family()->defaults.contains("mrope_section")) return;
  if (!object.contains("mrope_section") && !object.contains("xdrope_section")) {
    const json& sections = fields.family()->defaults.at("mrope_section");
    int64_t sum = 0;
    for (const json& one : sections) sum += one.get<int64_t>();
    json full = sections;  // an order in turn gives all pairs that are left to time
    const bool in_turn = !fields.value("mrope_interleaved").is_null();
    if (in_turn && sum < pairs) full[0] = full[0].get<int64_t>() + pairs - sum;
    if (sum != pairs && full == sections) {
      fields.say("the file has no mrope_section, and that of its type's code, " + shown(sections) +
                 ", does not sum to " + std::to_string(pairs) + " pairs (" +
                 fields.family()->origin() + ", " + fields.family()->source +
                 "): which pairs follow height and width is not said");
      return;
    }
    object["mrope_section"] = full;
  }
  if (!fields.value("mrope_plane_first").is_null()) object["mrope_plane_first"] = true;
  const bool interleaved = !fields.value("mrope_interleaved").is_null();
  if (object.contains("mrope_interleaved") && object["mrope_interleaved"] != json(interleaved) &&
      object["mrope_interleaved"].is_boolean()) {
    fields.say("mrope_interleaved " + object["mrope_interleaved"].dump() +
               " is not read by the code of this type (" + fields.family()->origin() + ", " +
               fields.family()->source + "), whose pairs follow the axes " +
               (interleaved ? "in turn" : "in another order"));
  }
  if (interleaved || object.contains("mrope_interleaved"))
    object["mrope_interleaved"] = interleaved;
}

std::string words_on_ntk(int64_t dim) {
  return "ntk is taken for bloc97's formula, base times factor^(R / (R - 2)) with R = " +
         std::to_string(dim) + ", which keeps the fastest pair. " + engine_fact("vllm.ntk") +
         ". Where max_position_embeddings has the factor in it already, lengths here are too long "
         "by it";
}

// The size of a latent head already gives the number of rotated channels; a part beside it must
// agree.
void compare_part(const LayerFacts& facts, std::optional<double> part, RopeConfig& rope) {
  if (!facts.latent || !facts.rotary_dim || !part || *part == 1) return;
  const double channels = *part * static_cast<double>(facts.head_dim);
  if (std::fabs(channels - static_cast<double>(*facts.rotary_dim)) < 1) return;
  rope.scaling.warnings.push_back(
      "partial_rotary_factor is " + json(*part).dump() + ", and qk_rope_head_dim says that " +
      std::to_string(*facts.rotary_dim) + " of " + std::to_string(facts.head_dim) +
      " channels rotate; the latter is taken");
}

// Compares rotary_dim with partial_rotary_factor, which must agree.
void compare_channels(ModelFields& fields, const json& object, const RopeConfig& rope) {
  if (!fields.says("rotary_dim") || rope.latent) return;
  std::optional<double> part = part_in(object);
  if (!part && fields.says("partial_rotary_factor")) {
    part = fields.number("partial_rotary_factor", 1e-6, 1);
  }
  const auto channels = fields.integer("rotary_dim", 2, kWidestHead);
  if (!part || !channels) return;
  const auto by_part = static_cast<int64_t>(static_cast<double>(rope.head_dim) * *part);
  if (by_part == *channels) return;
  fields.say("rotary_dim is " + std::to_string(*channels) + " and partial_rotary_factor " +
             shown(*part) + ", which is " + std::to_string(by_part) + " of " +
             std::to_string(rope.head_dim) + " channels; " + std::to_string(rope.rotary_dim) +
             " are taken" +
             (fields.family() == nullptr ? "" : ", as " + fields.family()->origin() + " does") +
             ": keep the one that the model was trained with");
}

void read_rotation(const LayerFacts& facts, ModelFields& fields, const Lengths& lengths,
                   const std::string& where, bool nested, RopeConfig& rope) {
  json object = facts.object;
  // Code sets defaults when it converts an old file to parameters by kind, but not for files that
  // have them.
  if (!nested) add_defaults_of_code(fields.family(), object);
  const bool proportional = object.value("rope_type", json()) == json("proportional");
  std::optional<double> part = part_in(object);
  if (!part) part = facts.part;
  if (proportional) {  // the part belongs to the frequencies
    if (part) object["partial_rotary_factor"] = *part;
    rope.rotary_dim = facts.head_dim;
  } else {
    rope.rotary_dim = channels_of(facts, part);
  }
  add_sections_of_code(fields, rope.rotary_dim / 2, object);
  rope.base = facts.base.value_or(0);
  rope.scaling = read_scaling(object,
                              {.base = rope.base,
                               .pairs = rope.rotary_dim / 2,
                               .max_length = lengths.most,
                               .original_length = nested ? 0 : lengths.original,
                               .outer_first = true,
                               .original_from = lengths.original_from,
                               .scales_scores = facts.scales_scores,
                               .from_file = true},
                              where);
  if (rope.scaling.type == "ntk") rope.scaling.warnings.push_back(words_on_ntk(rope.rotary_dim));
  if (rope.scaling.base && !facts.base) rope.base = *rope.scaling.base;
  if (object.contains("alpha")) take_alpha(rope);
  compare_part(facts, part, rope);
  compare_channels(fields, object, rope);
  rope.first_channel = facts.first_channel.value_or(
      rope.latent && fields.family() == nullptr ? rope.head_dim - rope.rotary_dim : 0);
}

// Versions of vLLM differ if YaRN's gain is not the one that follows from the factor. Its code for
// latent attention, which may scale all scores, has another rule.
void warn_of_vllms_gain(const json& object, RopeConfig& rope) {
  const auto* fixed = std::get_if<Stretch>(&rope.scaling.stretch);
  const auto* yarn = fixed ? std::get_if<Yarn>(fixed) : nullptr;
  if (!yarn) return;
  const bool latent = rope.latent || rope.scaling.score_factor != 1;
  const auto rest = object.find("attn_factor");  // for older versions
  const double own = yarn_temperature(yarn->factor) *
                     (rest != object.end() && rest->is_number() ? rest->get<double>() : 1);
  if (latent ? !yarn->attention_factor : std::fabs(yarn_gain(*yarn) / own - 1) < 1e-9) return;
  const std::string fact = engine_fact(latent ? "vllm.mscale" : "vllm.attention_factor");
  std::vector<std::string>& warnings = rope.scaling.warnings;
  if (std::ranges::find(warnings, fact) == warnings.end()) warnings.push_back(fact);
}

// The factor of scores in a layer that does not rotate: code that multiplies all scores by a factor
// of YaRN does so there too.
double score_factor_of(const LayerFacts& facts, const Lengths& lengths,
                       const RopeParameters& parameters) {
  const json& object = parameters.object;
  if (!facts.scales_scores || parameters.nested || object.value("rope_type", json()) != "yarn") {
    return 1;
  }
  return read_scaling(object,
                      {.pairs = facts.rotary_dim.value_or(facts.head_dim) / 2,
                       .max_length = lengths.most,
                       .original_length = lengths.original,
                       .outer_first = true,
                       .scales_scores = true,
                       .from_file = true},
                      parameters.where)
      .score_factor;
}

RopeConfig rope_of(const LayerGroup& group, ModelFields& fields, const Lengths& lengths,
                   const RopeParameters& parameters, const std::string& type) {
  const LayerFacts& facts = group.facts;
  RopeConfig rope{.layers = group.name,
                  .model_type = type,
                  .head_dim = facts.head_dim,
                  .max_length = lengths.most,
                  .latent = facts.latent,
                  .window = facts.window,
                  .chunk = facts.chunk,
                  .both_sides = facts.both_sides,
                  .layer_numbers = group.layers,
                  .parameters = facts.parameters,
                  .rotates = facts.rotates,
                  .pairing = facts.pairing,
                  .softmax_scale = facts.softmax_scale,
                  .query_law = facts.query_law};
  if (facts.rotates) {
    const std::string where =
        parameters.nested ? parameters.where + "." + facts.parameters : parameters.where;
    read_rotation(facts, fields, lengths, where, parameters.nested, rope);
    warn_of_vllms_gain(facts.object, rope);
    const auto* fixed = std::get_if<Stretch>(&rope.scaling.stretch);
    rope.trained_stretched = fields.family() != nullptr && fields.family()->trained_stretched &&
                             fixed != nullptr && std::holds_alternative<Linear>(*fixed);
    if (parameters.nested && facts.object.value("truncate", json()) == json(false)) {
      rope.scaling.warnings.push_back(
          "truncate is false among the parameters of a kind of layer. " +
          engine_fact("transformers.truncate_nested"));
    }
  } else {
    const Family* family = fields.family();
    rope.instead = family && family->never_rotates() ? family->instead : "none";
    rope.scaling.score_factor = score_factor_of(facts, lengths, parameters);
  }
  if (facts.query_scale.law != QueryLaw::kNone) rope.scaling.query_scale = facts.query_scale;
  return rope;
}

void add_remarks(const std::vector<FamilyRemark>& remarks, ModelFields& fields,
                 const RopeParameters& parameters, std::vector<std::string>& to) {
  const auto value_of = [&](const std::string& name) -> Value {
    if (name == "nested") return Value(parameters.nested);
    Value value = fields.find_value(name);
    if (!value.get().is_null() || !parameters.object.is_object()) return value;
    if (parameters.object.contains(name)) return Value(parameters.object[name]);
    for (const auto& item : parameters.object.items()) {
      if (item.value().is_object() && item.value().contains(name)) return Value(item.value()[name]);
    }
    return value;
  };
  for (const FamilyRemark& remark : remarks) {
    if (remark.when.empty() || is_true(evaluate(remark.when, value_of))) to.push_back(remark.say);
  }
}

// Remarks on the whole model are added to its first group.
void add_words(ModelFields& fields, const RopeParameters& parameters, const std::string& type,
               std::vector<RopeConfig>& ropes) {
  const Family* family = fields.family();
  RopeConfig& first = ropes.at(0);
  std::vector<std::string>& warnings = first.scaling.warnings;
  if (family == nullptr && !type.empty()) {
    warnings.insert(warnings.begin(), "not audited: " + shown(type) +
                                          "; this is the general meaning of its file, and its code "
                                          "may have layers, parts and defaults of its own");
  }
  warnings.insert(warnings.end(), fields.warnings().begin(), fields.warnings().end());
  if (std::ranges::any_of(ropes, &RopeConfig::both_sides)) {
    first.notes.emplace_back("windows reach as far to the right as to the left");
  }
  if (family == nullptr) return;
  std::string taken;
  for (const std::string& one : fields.taken_from_code()) {
    taken += (taken.empty() ? "" : ", ") + one;
  }
  if (!taken.empty()) {
    first.notes.push_back("not in the file, from " + type + "'s code (" + family->origin() + ", " +
                          family->source + "): " + taken);
  }
  add_remarks(family->notes, fields, parameters, first.notes);
  add_remarks(family->warnings, fields, parameters, warnings);
}

void check_heads(ModelFields& fields) {
  const auto heads = fields.integer("num_attention_heads", 1, kWidest);
  const json shared = fields.value("num_key_value_heads");
  if (!heads || !shared.is_number_integer()) return;
  const auto many = fields.integer("num_key_value_heads", 1, kWidest);
  if (many && *heads % *many != 0) {
    fields.bad("num_key_value_heads", "a divisor of num_attention_heads, " + std::to_string(*heads),
               shared);
  }
}

void read_logn(ModelFields& fields, std::vector<RopeConfig>& ropes) {
  const json logn = fields.value("use_logn_attn");
  if (!logn.is_boolean() || !logn.get<bool>()) return;
  const auto length = fields.integer("seq_length", 2, kLongestSequence);
  if (!length) {
    fields.bad("seq_length", "the length that the model was trained with", json());
  }
  for (RopeConfig& rope : ropes) rope.scaling.query_scale = {QueryLaw::kLogn, *length, 0};
}

[[noreturn]] void fail_for_missing(const std::vector<std::string>& missing) {
  std::string all;
  for (const std::string& one : missing) all += (all.empty() ? "" : "; ") + one;
  fail(kWhere + ": " + all + ", but " + (missing.size() == 1 ? "it is" : "they are") + " missing");
}

std::vector<RopeConfig> read_language_model(const json& config, const std::string& type,
                                            const Overrides& overrides) {
  const Family* family = find_family(type);
  std::optional<StatedPositions> stated;
  if (family != nullptr && family->never_rotates()) {
    stated = stated_positions(config, *family, type);
    if (!stated || !stated->rotates) {
      ModelFields fields(config, family, overrides, kWhere);
      std::vector<RopeConfig> none =
          unrotated_layers(stated ? stated->instead : family->instead, fields, type);
      if (stated) none[0].scaling.warnings.push_back(stated->warning);
      add_words(fields, {}, type, none);
      return none;
    }
    family = nullptr;  // another model under that name
  }
  ModelFields fields(config, family, overrides, kWhere);
  if (stated) fields.say(stated->warning);
  const std::string other = other_positions(config);
  if (!other.empty()) return {without_rotation(other, fields, type)};
  refuse_unknown_fields(config, family, kWhere);
  check_heads(fields);
  const RopeParameters parameters = rope_parameters(fields);
  std::vector<std::string> missing;
  const std::vector<LayerGroup> groups = layer_groups(fields, parameters, missing);
  if (groups.empty()) {
    RopeConfig none = without_rotation("none", fields, type);
    none.notes.emplace_back("no layer has attention");
    return {none};
  }
  if (!groups[0].facts.rotates && groups.size() == 1) {
    std::vector<RopeConfig> none = {without_rotation(
        family != nullptr && !family->instead.empty() ? family->instead : "none", fields, type)};
    none[0].window = groups[0].facts.window;
    none[0].chunk = groups[0].facts.chunk;
    add_words(fields, parameters, type, none);
    return none;
  }
  if (!missing.empty()) fail_for_missing(missing);
  say_options(fields, parameters);
  const Lengths lengths = lengths_of(fields);
  std::vector<RopeConfig> ropes;
  ropes.reserve(groups.size());
  for (const LayerGroup& group : groups) {
    ropes.push_back(rope_of(group, fields, lengths, parameters, type));
  }
  read_logn(fields, ropes);
  read_dual_chunks(fields, ropes);
  add_words(fields, parameters, type, ropes);
  return ropes;
}

}  // namespace

std::vector<RopeConfig> read_hugging_face(const json& config, const Overrides& overrides) {
  if (!config.is_object()) fail(kWhere + ": expected an object");
  if (config.contains("yarn") && config.at("yarn").is_object() && config.contains("dim")) {
    fail(kWhere +
         ": yarn: expected rope_scaling or rope_parameters, but got Mistral's own params.json: "
         "give the model's config.json");
  }
  const LanguageModel model = find_language_model(config);
  std::vector<RopeConfig> ropes = read_language_model(*model.config, model.model_type, overrides);
  say_other_places(config, model, ropes.at(0));
  return ropes;
}

}  // namespace sextant
