#include "sextant/setting/hugging_face.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "sextant/error.h"
#include "sextant/setting/fields.h"

namespace sextant {
namespace {

using nlohmann::json;

constexpr int64_t kLongest = int64_t{1} << 40;
constexpr int64_t kWidest = 1 << 20;
const std::string kWhere = "config.json";

// Sizes of heads, and the base and lengths that stand beside the scaling.
struct Model {
  std::string type;
  int64_t head_dim = 0;  // of queries and keys
  int64_t turning = 0;   // channels that partial_rotary_factor is a part of
  std::optional<int64_t> rotary_dim;
  std::optional<double> partial, base, local_base;
  int64_t max_length = 0, original_length = 0;
  bool latent = false;  // multi-head latent attention: DeepSeek, Kimi
};

int64_t head_dim_of(Fields& fields, const Overrides& overrides) {
  const auto own = fields.integer("head_dim", 2, kWidest);
  if (overrides.head_dim > 0) return overrides.head_dim;
  if (own) return *own;
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

Model model_of(Fields& fields, const Overrides& overrides) {
  Model model;
  model.type = fields.text("model_type").value_or("");
  if (const auto pe = fields.integer("qk_rope_head_dim", 2, kWidest)) {  // DeepSeek
    model.turning = *pe;
    model.latent = true;
    model.head_dim = *pe + fields.needed_integer("qk_nope_head_dim", 0, kWidest);
  } else {
    model.turning = model.head_dim = head_dim_of(fields, overrides);
  }
  model.rotary_dim = fields.integer("rotary_dim", 2, kWidest);
  model.partial = fields.number("partial_rotary_factor", 1e-6, 1);
  if (!model.partial) model.partial = fields.number("rotary_pct", 1e-6, 1);
  model.base = fields.number("rope_theta", 1e-3, 1e30);
  if (!model.base) model.base = fields.number("rotary_emb_base", 1e-3, 1e30);
  if (overrides.base > 0) model.base = overrides.base;
  model.local_base = fields.number("rope_local_base_freq", 1e-3, 1e30);
  model.max_length = fields.integer("max_position_embeddings", 1, kLongest).value_or(0);
  model.original_length =
      fields.integer("original_max_position_embeddings", 1, kLongest).value_or(0);
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
  return dim;
}

// partial_rotary_factor of an object, before its type has been read: lists are as long as it says.
std::optional<double> partial_in(const json& object) {
  const bool proportional = object.value("rope_type", json()) == json("proportional");
  if (proportional || !object.contains("partial_rotary_factor")) return {};
  const json& value = object.at("partial_rotary_factor");
  if (!value.is_number() || !(value.get<double>() > 0 && value.get<double>() <= 1)) return {};
  return value.get<double>();
}

RotarySetting setting_of(const Model& model, const json& object, const std::string& where,
                         const std::string& layers, std::optional<double> base) {
  RotarySetting setting{.layers = layers,
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
  setting.scaling = read_scaling(complete,
                                 {.base = base.value_or(0),
                                  .pairs = setting.rotary_dim / 2,
                                  .max_length = model.max_length,
                                  .original_length = model.original_length,
                                  .scales_scores = model.latent},
                                 where);
  if (setting.scaling.base) base = setting.scaling.base;
  if (!base) {
    fail(kWhere +
         ": rope_theta: expected the base of the frequencies, but it is missing; it is "
         "10000 in models that do not say it, as --base 10000 would");
  }
  setting.base = *base;
  return setting;
}

const json kPlain = {{"rope_type", "default"}};

bool is_nested(const json& parameters) {
  return !parameters.empty() && !parameters.contains("rope_type") && !parameters.contains("type") &&
         std::all_of(parameters.begin(), parameters.end(),
                     [](const json& value) { return value.is_object() || value.is_null(); });
}

// Qwen's first models.
json of_qwen(Fields& fields) {
  json object = kPlain;
  const auto length = fields.integer("seq_length", 2, kLongest);
  const bool dynamic = fields.flag("use_dynamic_ntk").value_or(false);
  if (dynamic) {
    if (!length) fields.bad("seq_length", "the length that the model was trained with");
    object = {{"rope_type", "qwen-ntk"}, {"original_max_position_embeddings", *length}};
  }
  return object;
}

std::vector<RotarySetting> read_parameters(const json& parameters, const Model& model) {
  std::vector<RotarySetting> settings;
  if (!is_nested(parameters)) {
    const json& object = parameters.empty() ? kPlain : parameters;
    json typed = object;
    if (!typed.contains("rope_type") && !typed.contains("type")) typed["rope_type"] = "default";
    settings.push_back(setting_of(model, typed, kWhere + ": rope_parameters", "", model.base));
    return settings;
  }
  for (const auto& item : parameters.items()) {
    if (item.value().is_null()) continue;
    json typed = item.value();
    if (!typed.contains("rope_type") && !typed.contains("type")) typed["rope_type"] = "default";
    settings.push_back(setting_of(model, typed, kWhere + ": rope_parameters." + item.key(),
                                  item.key(), model.base));
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
  const auto found = by_type.find(type.is_string() ? type.get<std::string>() : "");
  return found == by_type.end() ? "" : found->second;
}

void refuse_other_positions(const json& config) {
  const std::string method = other_positions(config);
  if (method.empty()) return;
  fail(kWhere +
       ": model_type: expected a model that turns queries and keys (RoPE), but got one whose "
       "positions are the method \"" +
       method + "\", which has no frequencies");
}

// Fields about rotary positions that nobody here knows may change everything.
void refuse_unknown(const json& config) {
  static const std::vector<std::string> known = {
      "rope_theta",           "rope_scaling",    "rope_parameters",
      "rope_local_base_freq", "rope_interleave", "rotary_emb_base",
      "rotary_pct",           "rotary_dim",      "rope_interleaved"};
  for (const auto& item : config.items()) {
    const std::string& key = item.key();
    if (!key.starts_with("rope_") && !key.starts_with("rotary_")) continue;
    if (std::ranges::find(known, key) == known.end()) {
      fail(kWhere + ": " + json(key).dump(-1, ' ', true, json::error_handler_t::replace) +
           ": expected no field about rotary positions that sextant does not know, but got one");
    }
  }
}

}  // namespace

json parse_json(const std::string& text, const std::string& where) {
  try {
    return json::parse(text);
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

std::vector<RotarySetting> read_hugging_face(const json& config, const Overrides& overrides) {
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
  std::vector<RotarySetting> settings;
  const json* parameters = fields.object("rope_parameters");
  const json* scaling = fields.object("rope_scaling");
  if (parameters && scaling && *parameters != *scaling) {
    fail(kWhere + ": rope_scaling: expected none beside rope_parameters, but got one");
  }
  if (parameters) {
    settings = read_parameters(*parameters, model);
  } else {
    const json object = scaling ? *scaling : of_qwen(fields);
    const std::string layers = model.local_base ? "full_attention" : "";
    settings.push_back(setting_of(model, object, kWhere + ": rope_scaling", layers, model.base));
    if (model.local_base) {  // Gemma 3: windows keep the plain ladder of another base
      settings.push_back(setting_of(model, kPlain, kWhere, "sliding_attention", model.local_base));
    }
  }
  if (fields.flag("use_logn_attn").value_or(false)) {
    const int64_t length = fields.needed_integer("seq_length", 2, kLongest);
    for (RotarySetting& setting : settings) {
      setting.scaling.query_scale = {QueryLaw::kLogn, length, 0};
    }
  }
  return settings;
}

}  // namespace sextant
