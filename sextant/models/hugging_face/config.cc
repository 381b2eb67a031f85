// Reads a decoder's configuration from the fields of its family, and writes it into them.
//
// A missing field has transformers' default if that is one value for all models of a family; other
// fields are required.
#include "sextant/models/hugging_face/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "sextant/base/error.h"
#include "sextant/models/hugging_face/layout.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/torch/method.h"

namespace sextant::hugging_face {
namespace {

using nlohmann::json;

constexpr int64_t kMost = int64_t{1} << 40;
const std::string kWhere = "config.json";

void expect_flag(const JsonFields& fields, const std::string& name, bool expected, bool otherwise) {
  if (fields.optional_flag(name).value_or(otherwise) != expected)
    fields.refuse(name,
                  expected ? "true: no other is known here" : "false: no other is known here");
}

// Refuses features that this decoder does not have.
void refuse_others(const JsonFields& fields, const FamilyFacts& facts) {
  for (const auto& [name, expected] : facts.checked.items())
    expect_flag(fields, name, expected, facts.if_missing.value(name, expected.get<bool>()));
}

Activation activation_of(const JsonFields& fields, const FamilyFacts& facts) {
  const std::string key = facts.key("activation");
  if (key.empty()) return Activation::kGelu;
  const std::string word = fields.optional_string(key).value_or(facts.gated ? "silu" : "");
  if (facts.gated && word == "silu") return Activation::kSwiGlu;
  if (!facts.gated && word == "gelu") return Activation::kGelu;
  if (!facts.gated && word == "relu2") return Activation::kSquaredRelu;
  fields.refuse(key, facts.gated ? "\"silu\"" : "\"gelu\" or \"relu2\"");
}

DecoderOptions decoder_options(const JsonFields& fields, Family family) {
  const FamilyFacts& facts = facts_of(family);
  DecoderOptions model;
  model.vocabulary = fields.integer("vocab_size", 1, kMost);
  model.width = fields.integer(facts.key("width"), 1, kMost);
  model.layers = fields.integer(facts.key("layers"), 1, kMost);
  model.heads = fields.integer(facts.key("heads"), 1, kMost);
  model.key_heads = model.heads;
  if (const std::string key = facts.key("key_heads"); !key.empty())
    model.key_heads = fields.optional_integer(key, 1, kMost).value_or(model.heads);
  model.mlp_width = 4 * model.width;
  if (const std::string key = facts.key("mlp_width"); !key.empty()) {
    const auto width = fields.optional_integer(key, 1, kMost);
    if (!width && family != Family::kGpt2) fields.refuse(key, "an integer");
    model.mlp_width = width.value_or(model.mlp_width);
  }
  model.norm_epsilon = fields.number(facts.key("epsilon"), 1e-30, 1);
  model.norm = facts.rms_norm ? Norm::kRmsNorm : Norm::kLayerNorm;
  model.activation = activation_of(fields, facts);
  model.tied = false;
  check(model);
  if (const auto head_dim = fields.optional_integer("head_dim", 1, kMost);
      head_dim && *head_dim != model.head_dim()) {
    fields.refuse("head_dim", facts.key("width") + " / " + facts.key("heads") + " (" +
                                  std::to_string(model.head_dim()) + ")");
  }
  return model;
}

// Sets the method, its options and, if the file gives it, L.
void read_rope(const json& json, const JsonFields& fields, Family family, ModelConfig& config) {
  const std::vector<RopeConfig> ropes = read_hugging_face(json);
  if (ropes.size() != 1 || !ropes[0].rotates)
    fail(kWhere + ": rope_parameters: expected layers that all rotate alike, but got " +
         (ropes[0].rotates ? std::to_string(ropes.size()) + " groups of layers"
                           : "none that rotate"));
  nlohmann::json options = rotary_options(ropes[0]);
  config.method = "rope";
  config.train_length = trained_length(ropes[0]);
  if (family == Family::kMistral || family == Family::kStarcoder2) {
    if (!json.contains("sliding_window")) fields.refuse("sliding_window", "an integer or null");
    if (const auto window = fields.optional_integer("sliding_window", 1, kMost)) {
      config.method = "window";
      options = {{"window", *window}, {"of", "rope"}, {"options", options}};
    }
  }
  config.options = options.dump();
}

void read_alibi(const JsonFields& fields, ModelConfig& config) {
  const ForeignFields inner(fields.object("attn_config"), kWhere + ": attn_config");
  expect_flag(inner, "alibi", true, true);
  expect_flag(inner, "qk_ln", false, false);
  for (const char* field : {"clip_qkv", "softmax_scale"})
    if (inner.has(field)) inner.refuse(field, "null: no other is known here");
  if (inner.optional_number("alibi_bias_max", 1e-6, 1e6).value_or(8) != 8)
    inner.refuse("alibi_bias_max", "8, which transformers takes it for whatever it says");
  config.method = "alibi";
}

void read_positions(const json& json, const JsonFields& fields, Family family,
                    ModelConfig& config) {
  const int64_t length =
      fields.optional_integer(facts_of(family).key("length"), 1, kMost).value_or(0);
  config.train_length = length;
  if (family == Family::kMpt) return read_alibi(fields, config);
  if (family == Family::kGpt2) {
    config.method = "learned";
    config.options = nlohmann::json{{"rows", fields.integer("n_positions", 1, kMost)}}.dump();
    return;
  }
  if (family != Family::kSmolLm3) return read_rope(json, fields, family, config);
  config.method = "none";
  const std::vector<int64_t> turns = fields.optional_integers("no_rope_layers", 0, 1);
  if (!fields.has("no_rope_layers") || std::ranges::count(turns, 1) > 0)
    fields.refuse("no_rope_layers", "0 for every layer");
}

void read_own_words(const JsonFields& fields, ModelConfig& config) {
  if (const nlohmann::json* extra = fields.optional_object("sextant")) {
    const ForeignFields own(*extra, kWhere + ": sextant");
    config.train_length = own.integer("train_length", 1, kMost);
    config.model.tied = own.optional_flag("tied").value_or(false);
    const std::string pairing = own.optional_string("pairing").value_or("half-split");
    if (pairing == "interleaved") {
      json options = json::parse(config.options);
      (config.method == "window" ? options.at("options") : options)["pairing"] = pairing;
      config.options = options.dump();
    } else if (pairing != "half-split") {
      own.refuse("pairing", "\"half-split\" or \"interleaved\"");
    }
  }
  if (config.train_length < 1)
    fail(kWhere +
         ": max_position_embeddings: expected the length that the model was trained with, "
         "but it is missing");
}

// MPT's biases end at max_seq_len, and a longer sequence is an error there; alibi is meant for
// longer ones, so max_seq_len is 16 training lengths.
constexpr int64_t kMptReach = 16;

// "gelu" is the exact function; SwiGLU has "silu".
const char* word_of(Activation activation) {
  if (activation == Activation::kSwiGlu) return "silu";
  return activation == Activation::kGelu ? "gelu" : "relu2";
}

json sizes(const ModelConfig& config, const FamilyFacts& facts) {
  const DecoderOptions& model = config.model;
  json out = {{facts.key("width"), model.width},
              {facts.key("layers"), model.layers},
              {facts.key("heads"), model.heads},
              {facts.key("epsilon"), model.norm_epsilon},
              {facts.key("length"), config.train_length}};
  const auto add = [&](const char* size, const json& value) {
    if (const std::string key = facts.key(size); !key.empty()) out[key] = value;
  };
  add("mlp_width", model.mlp_width);
  add("key_heads", model.key_heads);
  add("activation", word_of(model.activation));
  if (facts.head_dim) out["head_dim"] = model.head_dim();
  return out;
}

int64_t rotary_dim(const ModelConfig& config, const json& options) {
  return options.at("dim").is_null() ? config.model.head_dim() : options.at("dim").get<int64_t>();
}

int64_t times(double factor, int64_t length) {
  return static_cast<int64_t>(std::ceil(factor * static_cast<double>(length)));
}

// The longest sequence that a fixed stretch is made for.
int64_t stretched_length(const Stretch& stretch, int64_t train_length) {
  const double factor = std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.factor; }) return kind.factor;
        return 1.0;
      },
      stretch);
  return times(factor, train_length);
}

// The RopeConfig of complete options of rope; an NTK stretch becomes the base that it is equal to.
// Throws Error for an invalid stretch.
RopeConfig rope_config_of(const ModelConfig& config, const json& options) {
  RopeConfig rope{.model_type = "",
                  .head_dim = config.model.head_dim(),
                  .rotary_dim = rotary_dim(config, options),
                  .base = options.at("base").get<double>(),
                  .max_length = config.train_length};
  json stretch = options.at("stretch");
  if (stretch.is_null()) return rope;
  if (stretch.is_string()) stretch = scaling_of_words(stretch.get<std::string>(), "stretch");
  rope.scaling = read_scaling(
      stretch,
      {.base = rope.base, .pairs = rope.rotary_dim / 2, .original_length = config.train_length},
      "stretch");
  const auto* fixed = std::get_if<Stretch>(&rope.scaling.stretch);
  if (fixed == nullptr) {
    const auto& dynamic = std::get<DynamicStretch>(rope.scaling.stretch);
    // The other kinds take max_position_embeddings as the training length.
    if (dynamic.growth == Growth::kStep)
      rope.max_length = times(dynamic.factor, config.train_length);
    return rope;
  }
  rope.max_length = stretched_length(*fixed, config.train_length);
  if (const auto* ntk = std::get_if<Ntk>(fixed); ntk != nullptr && rope.rotary_dim > 2) {
    const auto dim = static_cast<double>(rope.rotary_dim);
    rope.base *= std::pow(ntk->factor, dim / (dim - 2));
    rope.scaling = {};
  }
  // ByParts and llama3 are two names of one formula.
  if (std::holds_alternative<ByParts>(*fixed)) rope.scaling.type = "llama3";
  return rope;
}

json with_rope(json out, const ModelConfig& config, const json& options) {
  return write_hugging_face(std::move(out), {rope_config_of(config, options)}, 4);
}

json with_positions(json out, const ModelConfig& config, Family family) {
  const json options = complete_options(config.method, json::parse(config.options));
  const bool windowed = config.method == "window";
  switch (family) {
    case Family::kMpt:
      out["expansion_ratio"] = 4;
      out["max_seq_len"] = kMptReach * config.train_length;
      out["attn_config"] = {
          {"alibi", true},  {"alibi_bias_max", 8},      {"attn_pdrop", 0},   {"clip_qkv", nullptr},
          {"qk_ln", false}, {"softmax_scale", nullptr}, {"prefix_lm", false}};
      return out;
    case Family::kGpt2:
      if (!options.at("rows").is_null()) out["n_positions"] = options.at("rows");
      return out;
    case Family::kSmolLm3:
      out["no_rope_layers"] = std::vector<int>(static_cast<size_t>(config.model.layers), 0);
      return out;
    default:
      break;
  }
  if (family == Family::kMistral || family == Family::kStarcoder2) {
    out["sliding_window"] = nullptr;
    if (windowed) out["sliding_window"] = options.at("window");
    if (windowed && options.at("window").is_null()) out["sliding_window"] = config.train_length;
  }
  // StableLM's default rotates a quarter of the channels.
  if (family == Family::kStableLm) {
    const RopeConfig rope = rope_config_of(config, options);
    out["partial_rotary_factor"] =
        static_cast<double>(rope.rotary_dim) / static_cast<double>(rope.head_dim);
  }
  return with_rope(std::move(out), config,
                   windowed ? complete_options("rope", options.at("options")) : options);
}

}  // namespace

ReadConfig read_config(const json& json) {
  const ForeignFields fields(json, kWhere);
  const auto type = fields.optional_string("model_type");
  const std::optional<Family> family = type ? family_of(*type) : std::nullopt;
  if (!family)
    fields.refuse(
        "model_type",
        "one of llama, mistral, smollm3, arcee, stablelm, starcoder2, mpt, gpt2 and sextant");
  ReadConfig read{.family = *family};
  if (*family == Family::kOwn) {
    if (!json.contains("sextant")) fields.refuse("sextant", "an object");
    read.config = json.at("sextant").get<ModelConfig>();
    return read;
  }
  const FamilyFacts& facts = facts_of(*family);
  refuse_others(fields, facts);
  read.config.model = decoder_options(fields, *family);
  read_positions(json, fields, *family, read.config);
  read_own_words(fields, read.config);
  read.one_matrix = fields.optional_flag("tie_word_embeddings").value_or(facts.ties);
  if (read.one_matrix && read.config.model.tied)
    fields.refuse("tie_word_embeddings", "false, as sextant.tied is true");
  return read;
}

json write_config(const ModelConfig& config, Family family) {
  const FamilyFacts& facts = facts_of(family);
  json out = {{"architectures", {facts.architecture}},
              {"model_type", facts.model_type},
              {"vocab_size", config.model.vocabulary},
              {"torch_dtype", "float32"}};
  if (family == Family::kOwn) {
    out["sextant"] = config;
    return out;
  }
  // Byte vocabularies have no tokens for the begin, the end or padding.
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) out[token] = nullptr;
  out["tie_word_embeddings"] = false;
  out.update(sizes(config, facts));
  out.update(facts.checked);
  out.update(facts.written);
  out["sextant"] = {{"train_length", config.train_length},
                    {"tied", config.model.tied},
                    {"pairing", pairing_of(config)}};
  return with_positions(std::move(out), config, family);
}

std::string rotary_obstacle(const ModelConfig& config, const json& options, bool partial) {
  const json plain = complete_options("rope", json::object());
  for (const char* option : {"columns", "sense", "axes", "query_scale", "train"}) {
    if (options.at(option) != plain.at(option))
      return std::string("rope's ") + option + " = " + options.at(option).dump() +
             " has no word there";
  }
  const int64_t dim = rotary_dim(config, options);
  if (!partial && dim != config.model.head_dim())
    return "a rope of " + std::to_string(dim) + " of " + std::to_string(config.model.head_dim()) +
           " channels has no architecture there with this norm and activation";
  const RopeConfig rope = rope_config_of(config, options);
  if (rope.scaling.is_dynamic() && options.at("dynamic") != "length")
    return "stretches that go by the text go by its length there (dynamic = \"length\")";
  try {
    write_hugging_face(json::object(), {rope}, 4);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

json rotary_options(const RopeConfig& rope) {
  json options = {{"base", rope.base}};
  if (rope.rotary_dim != rope.head_dim) options["dim"] = rope.rotary_dim;
  if (rope.scaling.type != "default") {
    options["stretch"] = scaling_object(rope);
    if (rope.scaling.is_dynamic()) options["dynamic"] = "length";
  }
  return options;
}

}  // namespace sextant::hugging_face
