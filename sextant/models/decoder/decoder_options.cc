#include "sextant/models/decoder/decoder_options.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"

namespace sextant {
namespace {

template <class T, size_t N>
using Names = std::array<std::pair<T, const char*>, N>;

constexpr Names<Norm, 2> kNorms{{{Norm::kLayerNorm, "layernorm"}, {Norm::kRmsNorm, "rmsnorm"}}};
constexpr Names<Activation, 3> kActivations{{{Activation::kGelu, "gelu"},
                                             {Activation::kSquaredRelu, "relu2"},
                                             {Activation::kSwiGlu, "swiglu"}}};

template <class T, size_t N>
const char* name_of(const Names<T, N>& names, T value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "";
}

template <class T, size_t N>
T named(const Names<T, N>& names, const std::string& field, const std::string& name) {
  std::string known;
  for (const auto& [value, its_name] : names) {
    if (name == its_name) return value;
    known += (known.empty() ? "" : ", ") + std::string(its_name);
  }
  fail("model: " + field + ": expected one of " + known + ", but got " + name);
}

void at_least_one(const char* name, int64_t value) {
  if (value < 1) {
    fail("model: " + std::string(name) + ": expected at least 1, but got " + std::to_string(value));
  }
}

void token_or_none(const char* name, int64_t token, int64_t vocabulary) {
  if (token >= vocabulary) {
    fail("model: " + std::string(name) + ": expected a token below vocabulary (" +
         std::to_string(vocabulary) + ") or -1, but got " + std::to_string(token));
  }
}

void multiple(const char* name, int64_t value, const char* of, int64_t divisor) {
  if (value % divisor != 0) {
    fail("model: " + std::string(name) + ": expected a multiple of " + of + " (" +
         std::to_string(divisor) + "), but got " + std::to_string(value));
  }
}

}  // namespace

Norm norm(const std::string& name) { return named(kNorms, "norm", name); }

Activation activation(const std::string& name) { return named(kActivations, "activation", name); }

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
  if (options.query_token >= 0 && options.causal) {
    fail("model: query_token: expected -1 in a causal model, but got " +
         std::to_string(options.query_token));
  }
  if (!(options.norm_epsilon > 0 && options.norm_epsilon < 1)) {
    fail("model: norm_epsilon: expected a number between 0 and 1, but got " +
         nlohmann::json(options.norm_epsilon).dump());
  }
}

void to_json(nlohmann::json& json, const DecoderOptions& options) {
  json = {{"vocabulary", options.vocabulary},
          {"layers", options.layers},
          {"width", options.width},
          {"heads", options.heads},
          {"key_heads", options.key_heads},
          {"mlp_width", options.mlp_width},
          {"norm", name_of(kNorms, options.norm)},
          {"activation", name_of(kActivations, options.activation)},
          {"norm_epsilon", options.norm_epsilon},
          {"tied", options.tied}};
  if (!options.causal) json["causal"] = false;
  if (options.padding >= 0) json["padding"] = options.padding;
  if (options.query_token >= 0) json["query_token"] = options.query_token;
}

void from_json(const nlohmann::json& json, DecoderOptions& options) {
  JsonFields fields(json, "model");
  fields.read("vocabulary", options.vocabulary);
  fields.read("layers", options.layers);
  fields.read("width", options.width);
  fields.read("heads", options.heads);
  fields.read("key_heads", options.key_heads);
  fields.read("mlp_width", options.mlp_width);
  std::string norm, activation;
  fields.read("norm", norm);
  fields.read("activation", activation);
  fields.read("norm_epsilon", options.norm_epsilon);
  fields.read("tied", options.tied);
  if (json.contains("causal")) fields.read("causal", options.causal);
  if (json.contains("padding")) fields.read("padding", options.padding);
  if (json.contains("query_token")) fields.read("query_token", options.query_token);
  options.norm = sextant::norm(norm);
  options.activation = sextant::activation(activation);
  fields.finish();
  check(options);
}

}  // namespace sextant
