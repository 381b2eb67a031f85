#include "sextant/rope_config/hugging_face.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sextant/error.h"
#include "sextant/rope_config/fields.h"
#include "sextant/rope_config/layers.h"

namespace sextant {
namespace {

using nlohmann::json;

constexpr int64_t kWidest = 1 << 20;
const std::string kWhere = "config.json";

// Sizes of heads, and the base and lengths that stand beside the scaling.
struct Model {
  std::string type;
  int64_t head_dim = 0;  // of queries and keys
  int64_t turning = 0;   // channels that partial_rotary_factor is a part of
  std::optional<int64_t> rotary_dim;
  std::optional<int64_t> full_head_dim;    // of layers without a window, if theirs is another
  std::optional<int64_t> window_head_dim;  // of layers with one, if theirs is another
  std::optional<double> partial, base, local_base;
  int64_t max_length = 0, original_length = 0;
  bool latent = false;  // multi-head latent attention: DeepSeek, Kimi
};

const std::string kFull = "full_attention", kSliding = "sliding_attention";

// Models whose layers with a window turn otherwise than the rest, though their first files say one
// rope_scaling only: with another base and unscaled (Gemma 3, ModernBERT), or only unscaled (OLMo 3).
bool has_local_base(const std::string& type) {
  static const std::set<std::string> all = {"gemma3",       "gemma3_text",       "gemma3n",
                                            "gemma3n_text", "t5gemma2",          "t5gemma2_text",
                                            "modernbert",   "modernbert-decoder"};
  return all.contains(type);
}

bool scales_full_layers_only(const std::string& type) {
  return has_local_base(type) || type == "olmo3";
}

int64_t head_dim_of(Fields& fields, const Overrides& overrides) {
  auto own = fields.integer("head_dim", 2, kWidest);
  if (!own) own = fields.integer("attention_head_dim", 2, kWidest);  // HunYuan
  if (overrides.head_dim > 0) return overrides.head_dim;
  if (own) return *own;
  // Their code has a size of its own where the file has none.
  const std::string type = fields.text("model_type").value_or("");
  if (type.starts_with("gemma")) {
    fields.bad("head_dim", "an integer (the code for gemma has 256, as --head-dim 256 would say)");
  }
  if (type.starts_with("qwen3")) {
    fields.bad("head_dim", "an integer (the code for qwen3 has 128, as --head-dim 128 would say)");
  }
  auto width = fields.integer("hidden_size", 1, kWidest);
  if (!width) width = fields.integer("n_embd", 1, kWidest);
  auto heads = fields.integer("num_attention_heads", 1, kWidest);
  if (!heads) heads = fields.integer("n_head", 1, kWidest);
  if (!width || !heads) {
    fields.bad("head_dim", "an integer, or hidden_size and num_attention_heads, or --head-dim");
  }
  if (*width % *heads != 0) fields.bad("hidden_size", "a multiple of num_attention_heads");
  return *width / *heads;
}

// Of names that mean the same, the first that is there.
std::optional<double> first_number(Fields& fields, std::initializer_list<const char*> names,
                                   double low, double high) {
  std::optional<double> found;
  for (const char* name : names) {
    const auto own = fields.number(name, low, high);
    if (!found) found = own;
  }
  return found;
}

void check_heads(Fields& fields) {
  const auto heads = fields.integer("num_attention_heads", 1, kWidest);
  const auto shared = fields.integer("num_key_value_heads", 1, kWidest);
  if (heads && shared && *heads % *shared != 0) {
    fields.bad("num_key_value_heads",
               "a divisor of num_attention_heads, " + std::to_string(*heads));
  }
}

Model model_of(Fields& fields, const Overrides& overrides) {
  check_heads(fields);
  Model model;
  model.type = fields.text("model_type").value_or("");
  if (const auto pe = fields.integer("qk_rope_head_dim", 2, kWidest)) {  // DeepSeek
    model.turning = *pe;
    model.latent = true;
    model.head_dim = *pe + fields.needed_integer("qk_nope_head_dim", 0, kWidest);
  } else {
    model.turning = model.head_dim = head_dim_of(fields, overrides);
  }
  model.full_head_dim = fields.integer("global_head_dim", 2, kWidest);  // Gemma 4
  model.window_head_dim = fields.integer("swa_head_dim", 2, kWidest);   // MiMo 2
  model.rotary_dim = fields.integer("rotary_dim", 2, kWidest);
  model.partial = first_number(
      fields, {"partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_emb_fraction"}, 1e-6, 1);
  model.base = first_number(
      fields, {"rope_theta", "rotary_emb_base", "rope_embedding_base", "global_rope_theta"}, 1e-3,
      1e30);
  if (overrides.base > 0) model.base = overrides.base;
  model.local_base = first_number(
      fields, {"rope_local_base_freq", "local_rope_theta", "swa_rope_theta"}, 1e-3, 1e30);
  if (overrides.local_base > 0) model.local_base = overrides.local_base;
  model.max_length = fields.integer("max_position_embeddings", 1, kLongestSequence).value_or(0);
  model.original_length =
      fields.integer("original_max_position_embeddings", 1, kLongestSequence).value_or(0);
  return model;
}

// The model as the layers of one type have it.
Model of_layers(Model model, const std::string& layers) {
  const auto own = layers == kFull      ? model.full_head_dim
                   : layers == kSliding ? model.window_head_dim
                                        : std::nullopt;
  if (own && !model.latent) model.head_dim = model.turning = *own;
  if (layers == kSliding && model.local_base) {
    model.base = model.local_base;
  } else if (layers == kSliding && has_local_base(model.type)) {
    model.base.reset();
  }
  return model;
}

int64_t rotary_dim_of(const Model& model, std::optional<double> partial) {
  if (!partial) partial = model.partial;
  const int64_t dim =
      model.rotary_dim && !partial
          ? *model.rotary_dim
          : static_cast<int64_t>(static_cast<double>(model.turning) * partial.value_or(1));
  if (dim < 2 || dim % 2 != 0) {
    fail(kWhere + ": " + (partial ? "partial_rotary_factor" : "head_dim") +
         ": expected an even number of channels that turn, but got " + std::to_string(dim));
  }
  if (dim > model.turning) {
    fail(kWhere + ": rotary_dim: expected at most the " + std::to_string(model.turning) +
         " channels of a head, but got " + std::to_string(dim));
  }
  return dim;
}

// The base that a type of model has in Hugging Face's code where its file says none; "": not known here.
std::string usual_base(const std::string& type, bool local) {
  static const std::set<std::string> ten_thousand = {
      "llama",       "mistral",     "qwen2",      "phi",      "phi3",      "gemma",
      "gemma2",      "gpt_neox",    "gptj",       "codegen",  "falcon",    "stablelm",
      "persimmon",   "olmo",        "starcoder2", "internlm", "internlm2", "olmo2",
      "deepseek_v2", "deepseek_v3", "cohere",     "granite",  "esm",       "roformer"};
  if (has_local_base(type))
    return local ? "10000" : type.starts_with("modern") ? "160000" : "1000000";
  return ten_thousand.contains(type) ? "10000" : "";
}

// partial_rotary_factor of an object, before its type has been read: lists are as long as it says.
std::optional<double> partial_in(const json& object) {
  const bool proportional = object.value("rope_type", json()) == json("proportional");
  if (proportional || !object.contains("partial_rotary_factor")) return {};
  const json& value = object.at("partial_rotary_factor");
  if (!value.is_number() || !(value.get<double>() > 0 && value.get<double>() <= 1)) return {};
  return value.get<double>();
}

[[noreturn]] void fail_for_base(const Model& model, const std::string& layers) {
  const bool local = layers == kSliding && has_local_base(model.type);
  const std::string option = local ? "--local-base" : "--base";
  const std::string usual = usual_base(model.type, local);
  fail(kWhere + ": " + (local ? "rope_local_base_freq" : "rope_theta") +
       ": expected the base of the frequencies" + (local ? " of layers with a window" : "") +
       ", but it is missing; " +
       (usual.empty() ? option + " says it"
                      : "it is " + usual + " in the code for " + model.type + ", as " + option +
                            " " + usual + " would say"));
}

// HunYuan's alpha makes another base, once and for all: no factor of the length, and its models were
// trained with that base.
void take_alpha(RopeConfig& setting) {
  const auto* fixed = std::get_if<Stretch>(&setting.scaling.stretch);
  const auto* ntk = fixed ? std::get_if<Ntk>(fixed) : nullptr;
  if (!ntk || setting.rotary_dim <= 2) return;
  const auto dim = static_cast<double>(setting.rotary_dim);
  setting.base *= std::pow(ntk->factor, dim / (dim - 2));
  setting.scaling.warnings.push_back("alpha (HunYuan) makes rope_theta the base " +
                                     json(setting.base).dump() +
                                     ", at every length; it says nothing about how far to read");
  setting.scaling.type = "default";
  setting.scaling.stretch = Stretch{};
}

RopeConfig setting_of(const Model& whole, const json& object, const std::string& where,
                      const std::string& layers) {
  const Model model = of_layers(whole, layers);
  RopeConfig setting{.layers = layers,
                     .model_type = model.type,
                     .head_dim = model.head_dim,
                     .max_length = model.max_length,
                     .latent = model.latent};
  // p-RoPE's part is one of the ladder, wherever it stands.
  json complete = object;
  const bool proportional = object.value("rope_type", json()) == json("proportional");
  if (proportional && model.partial && !object.contains("partial_rotary_factor")) {
    complete["partial_rotary_factor"] = *model.partial;
  }
  Model own = model;
  if (proportional) own.partial.reset();
  setting.rotary_dim = rotary_dim_of(own, partial_in(object));
  std::optional<double> base = model.base;
  setting.scaling = read_scaling(complete,
                                 {.base = base.value_or(0),
                                  .pairs = setting.rotary_dim / 2,
                                  .max_length = model.max_length,
                                  .original_length = model.original_length,
                                  .scales_scores = model.latent},
                                 where);
  if (setting.scaling.base) base = setting.scaling.base;
  if (!base) fail_for_base(model, layers);
  setting.base = *base;
  if (object.contains("alpha")) take_alpha(setting);
  return setting;
}

const json kPlain = {{"rope_type", "default"}};

bool is_nested(const json& parameters) {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const json& value) { return value.is_object(); });
}

// Qwen's first models.
json of_qwen(Fields& fields) {
  json object = kPlain;
  const auto length = fields.integer("seq_length", 2, kLongestSequence);
  const bool dynamic = fields.flag("use_dynamic_ntk").value_or(false);
  if (dynamic) {
    if (!length) fields.bad("seq_length", "the length that the model was trained with");
    object = {{"rope_type", "qwen-ntk"}, {"original_max_position_embeddings", *length}};
  }
  return object;
}

// One object for all layers, or for those without a window where the others turn otherwise.
std::vector<RopeConfig> read_flat(const json& object, const Model& model,
                                  const std::string& where) {
  const json type = object.value("rope_type", object.value("type", json()));
  const bool split = model.local_base || has_local_base(model.type) ||
                     (scales_full_layers_only(model.type) && type != json("default"));
  std::vector<RopeConfig> settings = {setting_of(model, object, where, split ? kFull : "")};
  if (split) settings.push_back(setting_of(model, kPlain, kWhere, kSliding));
  return settings;
}

std::vector<RopeConfig> read_parameters(const json& parameters, const Model& model) {
  std::vector<RopeConfig> settings;
  if (!is_nested(parameters)) {
    const json& object = parameters.empty() ? kPlain : parameters;
    json typed = object;
    if (!typed.contains("rope_type") && !typed.contains("type")) typed["rope_type"] = "default";
    return read_flat(typed, model, kWhere + ": rope_parameters");
  }
  for (const auto& item : parameters.items()) {
    if (!item.value().is_object()) continue;  // what some files say beside: their defaults
    json typed = item.value();
    if (!typed.contains("rope_type") && !typed.contains("type")) typed["rope_type"] = "default";
    settings.push_back(
        setting_of(model, typed, kWhere + ": rope_parameters." + item.key(), item.key()));
  }
  return settings;
}

// Models that turn nothing: what they have instead, by our name of the method; empty: they may turn.
std::string other_positions(const json& config) {
  static const std::map<std::string, std::string> by_type = {{"bloom", "alibi"},
                                                             {"mpt", "alibi"},
                                                             {"t5", "t5"},
                                                             {"mt5", "t5"},
                                                             {"umt5", "t5"},
                                                             {"longt5", "t5"},
                                                             {"switch_transformers", "t5"},
                                                             {"albert", "learned"},
                                                             {"electra", "learned"},
                                                             {"distilbert", "learned"},
                                                             {"xlm-roberta", "learned"},
                                                             {"gpt_bigcode", "learned"},
                                                             {"gpt2", "learned"},
                                                             {"gpt_neo", "learned"},
                                                             {"opt", "learned"},
                                                             {"bert", "learned"},
                                                             {"roberta", "learned"},
                                                             {"deberta", "deberta"},
                                                             {"deberta-v2", "deberta"},
                                                             {"nezha", "nezha"},
                                                             {"transfo-xl", "transformer-xl"},
                                                             {"xlnet", "xlnet"}};
  const auto is_true = [](const json& object, const char* name) {
    return object.is_object() && object.value(name, json()) == json(true);
  };
  const json attention = config.value("attn_config", json());
  if (is_true(attention, "rope") || config.contains("rope_theta")) return "";
  if (is_true(config, "alibi") || is_true(attention, "alibi")) return "alibi";
  const json type = config.value("model_type", json());
  const json kind = config.value("position_embedding_type", json());
  if (kind == json("alibi")) return "alibi";
  if (kind == json("relative_key") || kind == json("relative_key_query")) return "relative-key";
  // The 13B models of a family whose 7B ones turn.
  if (type == json("baichuan") && config.value("hidden_size", json()) == json(5120)) return "alibi";
  const auto found = by_type.find(type.is_string() ? type.get<std::string>() : "");
  return found == by_type.end() ? "" : found->second;
}

// What the file says of such a method: " (alibi_bias_max 8)".
std::string parameters_of_others(const json& config) {
  std::string said;
  const auto add = [&](const json& object) {
    for (const char* name :
         {"alibi_bias_max", "relative_attention_num_buckets", "relative_attention_max_distance",
          "max_relative_position", "max_relative_positions", "position_buckets", "pos_att_type",
          "clamp_len", "bi_data", "n_positions", "max_position_embeddings"}) {
      if (!object.contains(name) || object.at(name).is_object()) continue;
      const std::string value = object.at(name).dump(-1, ' ', true, json::error_handler_t::replace);
      said += said.empty() ? " (" : ", ";
      said += name;
      said += " ";
      said += value.substr(0, 60);
    }
  };
  add(config);
  if (config.contains("attn_config") && config.at("attn_config").is_object()) {
    add(config.at("attn_config"));
  }
  if (!said.empty()) said += ")";
  return said;
}

void refuse_other_positions(const json& config) {
  const std::string method = other_positions(config);
  if (method.empty()) return;
  fail(kWhere +
       ": model_type: expected a model that turns queries and keys (RoPE), but got one whose "
       "positions are the method \"" +
       method + "\", which has no frequencies" + parameters_of_others(config));
}

// Fields about rotary positions, or the size of heads, that nobody here knows may change everything.
void refuse_unknown(const json& config) {
  static const std::set<std::string> known = {
      "rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq", "rope_interleave",
      "rope_interleaved", "rope_traditional", "rope_pct", "rope_embedding_base",
      "global_rope_theta", "local_rope_theta", "swa_rope_theta", "qk_rope_head_dim",
      "no_rope_layers", "no_rope_layer_interval", "use_mrope", "use_rope", "rotary_emb_base",
      "rotary_pct", "rotary_dim", "rotary_emb_fraction", "partial_rotary_factor",
      "rotary_emb_interleaved",
      // sizes: of values, of what turns nothing
      "head_dim", "attention_head_dim", "global_head_dim", "swa_head_dim", "qk_nope_head_dim",
      "qk_head_dim", "v_head_dim", "swa_v_head_dim", "index_head_dim", "linear_key_head_dim",
      "linear_value_head_dim", "mamba_head_dim"};
  for (const auto& item : config.items()) {
    const std::string& key = item.key();
    const bool about = key.starts_with("rope_") || key.find("_rope") != std::string::npos ||
                       key.find("rotary_") != std::string::npos ||
                       key.find("head_dim") != std::string::npos;
    if (about && !item.value().is_null() && !known.contains(key)) {
      fail(kWhere + ": " + json(key).dump(-1, ' ', true, json::error_handler_t::replace) +
           ": expected no field about rotary positions that sextant does not know, but got one");
    }
  }
}

}  // namespace

json parse_json(const std::string& text, const std::string& where) {
  std::vector<std::set<std::string>> around;  // keys of the objects around: JSON lets them repeat
  const auto once = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) around.emplace_back();
    if (event == json::parse_event_t::object_end) around.pop_back();
    if (event == json::parse_event_t::key &&
        !around.back().insert(parsed.get<std::string>()).second) {
      fail(where + ": " + parsed.dump(-1, ' ', true, json::error_handler_t::replace) +
           ": expected once, but got two");
    }
    return true;
  };
  try {
    return json::parse(text, once);
  } catch (const json::exception& error) {
    // nlohmann names a byte; people look for a key.
    const auto* at = dynamic_cast<const json::parse_error*>(&error);
    const size_t byte = std::min(at ? at->byte : 0, text.size());
    const size_t colon = text.rfind(':', byte), quote = text.rfind('"', colon);
    std::string key;
    if (colon != std::string::npos && quote != std::string::npos && quote > 0) {
      const size_t open = text.rfind('"', quote - 1);
      if (open != std::string::npos)
        key = text.substr(open + 1, std::min<size_t>(quote - open - 1, 60));
    }
    fail(where + ": " +
         (key.empty() ? "" : json(key).dump(-1, ' ', true, json::error_handler_t::replace) + ": ") +
         "expected JSON, but could not read it at byte " + std::to_string(byte));
  }
}

std::vector<RopeConfig> read_hugging_face(const json& config, const Overrides& overrides) {
  if (!config.is_object()) fail(kWhere + ": expected an object");
  // Models that see and hear keep their language model's fields apart.
  if (config.contains("text_config") && config.at("text_config").is_object() &&
      !config.contains("rope_theta") && !config.contains("rope_parameters")) {
    return read_hugging_face(config.at("text_config"), overrides);
  }
  refuse_unknown(config);
  refuse_other_positions(config);
  Fields fields(config, kWhere);
  const Model model = model_of(fields, overrides);
  std::vector<RopeConfig> settings;
  const json* parameters = fields.object("rope_parameters");
  const json* scaling = fields.object("rope_scaling");
  if (parameters && scaling && *parameters != *scaling) {
    fail(kWhere + ": rope_scaling: expected none beside rope_parameters, but got one");
  }
  if (parameters) {
    settings = read_parameters(*parameters, model);
  } else {
    const json object = scaling ? *scaling : of_qwen(fields);
    settings = read_flat(object, model, kWhere + ": rope_scaling");
  }
  if (fields.flag("use_logn_attn").value_or(false)) {
    const int64_t length = fields.needed_integer("seq_length", 2, kLongestSequence);
    for (RopeConfig& setting : settings) {
      setting.scaling.query_scale = {QueryLaw::kLogn, length, 0};
    }
  }
  read_layers(config, fields, settings);
  return settings;
}

}  // namespace sextant
