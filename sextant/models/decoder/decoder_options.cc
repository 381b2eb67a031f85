#include "sextant/models/decoder/decoder_options.h"

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/base/names.h"
#include "sextant/files/json_record.h"

namespace sextant {
namespace {

constexpr Names<Norm, 2> kNorms{{{Norm::kLayerNorm, "layernorm"}, {Norm::kRmsNorm, "rmsnorm"}}};
constexpr Names<Activation, 3> kActivations{{{Activation::kGelu, "gelu"},
                                             {Activation::kSquaredRelu, "relu2"},
                                             {Activation::kSwiGlu, "swiglu"}}};

void at_least_one(const char* name, int64_t value) {
  if (value < 1)
    fail("model: " + std::string(name) + ": expected at least 1, but got " + std::to_string(value));
}

void token_or_none(const char* name, int64_t token, int64_t vocabulary) {
  if (token >= vocabulary)
    fail("model: " + std::string(name) + ": expected a token below vocabulary (" +
         std::to_string(vocabulary) + ") or -1, but got " + std::to_string(token));
}

void multiple(const char* name, int64_t value, const char* of, int64_t divisor) {
  if (value % divisor != 0)
    fail("model: " + std::string(name) + ": expected a multiple of " + of + " (" +
         std::to_string(divisor) + "), but got " + std::to_string(value));
}

}  // namespace

Norm norm(const std::string& name) { return value_named(kNorms, "model: norm", name); }

Activation activation(const std::string& name) {
  return value_named(kActivations, "model: activation", name);
}

void check(const DecoderOptions& options) {
  at_least_one("vocabulary", options.vocabulary);
  at_least_one("layers", options.layers);
  at_least_one("width", options.width);
  at_least_one("heads", options.heads);
  at_least_one("key_heads", options.key_heads);
  at_least_one("mlp_width", options.mlp_width);
  multiple("width", options.width, "heads", options.heads);
  multiple("heads", options.heads, "key_heads", options.key_heads);
  token_or_none("padding", options.padding, options.vocabulary);
  token_or_none("query_token", options.query_token, options.vocabulary);
  if (options.query_token >= 0 && options.causal)
    fail("model: query_token: expected -1 in a causal model, but got " +
         std::to_string(options.query_token));
  if (!(options.norm_epsilon > 0 && options.norm_epsilon < 1))
    fail("model: norm_epsilon: expected a number between 0 and 1, but got " +
         nlohmann::json(options.norm_epsilon).dump());
}

template <class Io>
void fields_of(const Io& io, RecordOf<Io, DecoderOptions>& options) {
  io("vocabulary", options.vocabulary)("layers", options.layers)("width", options.width);
  io("heads", options.heads)("key_heads", options.key_heads)("mlp_width", options.mlp_width);
  io.named("norm", options.norm, kNorms, "model: norm");
  io.named("activation", options.activation, kActivations, "model: activation");
  io("norm_epsilon", options.norm_epsilon)("tied", options.tied);
  io.unless("causal", options.causal, true).unless("padding", options.padding, -1);
  io.unless("query_token", options.query_token, -1);
}

void to_json(nlohmann::json& json, const DecoderOptions& options) { write_record(json, options); }

void from_json(const nlohmann::json& json, DecoderOptions& options) {
  read_record(json, "model", options);
  check(options);
}

template <class Io>
void fields_of(const Io& io, RecordOf<Io, ModelConfig>& config) {
  io.object("model", config.model)("method", config.method)("memory", config.memory);
  io("train_length", config.train_length);
  if constexpr (Io::kWrites) {
    io.at["options"] = nlohmann::json::parse(config.options);
  } else {
    config.options = io.at.object("options").dump();
  }
}

void to_json(nlohmann::json& json, const ModelConfig& config) { write_record(json, config); }

void from_json(const nlohmann::json& json, ModelConfig& config) {
  read_record(json, "config.json: sextant", config);
  if (config.memory < 0 || config.train_length < 1)
    fail("config.json: sextant: memory, train_length: expected at least 0 and 1, but got " +
         std::to_string(config.memory) + " and " + std::to_string(config.train_length));
}

}  // namespace sextant
