// The keys of a file are read as numbers first, then become a scaling by its type and the rules of
// the architecture's code.
#include "sextant/rope_config/gguf_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/gguf_divisors.h"

namespace sextant {
namespace {

using nlohmann::json;

// Sets mscale and mscale_all_dim as the architecture's code computes them from the key.
void take_log_multiplier(double log, const LlamaCppArchitecture* row, double attention,
                         double factor, json& object, std::vector<std::string>& warnings) {
  if (!row || row->log_unit == 0) {
    warnings.push_back(
        "rope.scaling.yarn_log_multiplier means different things in different architectures, and " +
        (row ? "llama.cpp's code of this one does not read it"
             : std::string("what it means in this one is not known")) +
        ": it is left out");
    return;
  }
  const double all = decimal(log) / row->log_unit;
  const double own = row->mscale_is_all_dim ? all : 1;
  object["scale_scores"] = row->scales_scores;
  if (attention == 1) {
    object["mscale"] = own;
    object["mscale_all_dim"] = all;
  } else {
    object["attention_factor"] =
        rounded_gain(attention * yarn_temperature(factor, own) / yarn_temperature(factor, all));
    if (row->scales_scores) object["mscale_all_dim"] = all;
  }
}

GgufFactors numbers_of(GgufKeys& keys) {
  GgufFactors n{.factor = keys.number(keys.own("rope.scaling.factor"), 0, 1e9).value_or(1)};
  const auto old = keys.number(keys.own("rope.scale_linear"), 0, 1e9);
  if (old && !keys.has(keys.own("rope.scaling.factor"))) n.factor = *old;
  if (n.factor == 0) n.factor = 1;  // 0 is none in llama.cpp
  n.original = keys.length(keys.own("rope.scaling.original_context_length"));
  n.attention = keys.number(keys.own("rope.scaling.attn_factor"), 1e-6, 1e6).value_or(1);
  const std::string key = keys.own("rope.scaling.type");
  n.type = keys.text(key).value_or(n.factor == 1 ? "none" : "linear");
  if (n.type != "none" && n.type != "linear" && n.type != "yarn" && n.type != "longrope") {
    GgufKeys::bad(key, "none, linear, yarn or longrope, but got " +
                           json(n.type).dump(-1, ' ', true, json::error_handler_t::replace));
  }
  return n;
}

void warn_of_unread(const std::string& key, double value, double taken, const GgufKeys& keys,
                    std::vector<std::string>& warnings) {
  warnings.push_back("rope.scaling." + key + " is " + json(decimal(value)).dump() +
                     " in the file, but " + llama_cpp_version() + " does not read it for " +
                     keys.arch() + " and takes " + json(taken).dump());
}

// A key that only some architectures read; the code's own value stands for it in the others.
double yarn_number(GgufKeys& keys, const std::string& key, bool read, double otherwise,
                   std::vector<std::string>& warnings) {
  const auto value = keys.number(keys.own("rope.scaling." + key), 1e-6, 1e9);
  if (!value) return otherwise;
  if (read) return *value;
  if (*value != otherwise) {
    warn_of_unread(key, *value, otherwise, keys, warnings);
    warnings.push_back(engine_fact("llama.cpp.betas"));
  }
  return otherwise;
}

void check_ramp(GgufKeys& keys, const LlamaCppArchitecture* row,
                std::vector<std::string>& warnings) {
  const std::string key = "yarn_ext_factor";
  const auto ext = keys.number(keys.own("rope.scaling." + key), -1, 1e6);
  if (!ext || *ext == 1 || *ext < 0) return;
  if (row && !row->yarn_keys.ext_factor) return warn_of_unread(key, *ext, 1, keys, warnings);
  GgufKeys::bad(keys.own("rope.scaling." + key),
                "1, the whole ramp, but got " + json(decimal(*ext)).dump());
}

json yarn_of(GgufKeys& keys, const LlamaCppArchitecture* row, const GgufFactors& n,
             int64_t max_length, std::vector<std::string>& warnings) {
  json object = {{"rope_type", "yarn"}, {"factor", n.factor}};
  check_ramp(keys, row, warnings);
  if (n.original > 0) {
    object["original_max_position_embeddings"] = n.original;
  } else if (max_length > 0) {
    object["original_max_position_embeddings"] = max_length;
    warnings.push_back(
        "rope.scaling.original_context_length is missing; llama.cpp takes context_length, " +
        std::to_string(max_length) + ", for it");
  }
  const LlamaCppArchitecture::YarnKeys as_most{.betas = true};
  const auto& code = row ? row->yarn_keys : as_most;
  object["beta_fast"] = yarn_number(keys, "yarn_beta_fast", code.betas, code.beta_fast, warnings);
  object["beta_slow"] = yarn_number(keys, "yarn_beta_slow", code.betas, code.beta_slow, warnings);
  const auto log = keys.number(keys.own("rope.scaling.yarn_log_multiplier"), 0, 1e6);
  if (log && *log != 0) {
    take_log_multiplier(*log, row, n.attention, n.factor, object, warnings);
  } else if (n.attention != 1) {
    object["attention_factor"] = rounded_gain(n.attention * yarn_temperature(n.factor));
  }
  return object;
}

// The scaling without divisors, and without a gain beside a scaling other than YaRN.
json scaling_of(GgufKeys& keys, const LlamaCppArchitecture* row, const GgufFactors& n,
                int64_t max_length, std::vector<std::string>& warnings) {
  const auto unread = keys.number(keys.own("rope.scaling.yarn_attn_factor"), 1e-6, 1e6);
  if (unread && *unread != 1) warnings.push_back(engine_fact("llama.cpp.yarn_attn_factor"));
  if (n.type == "yarn") return yarn_of(keys, row, n, max_length, warnings);
  for (const char* name :
       {"yarn_beta_fast", "yarn_beta_slow", "yarn_ext_factor", "yarn_log_multiplier"}) {
    keys.skip(keys.own(std::string("rope.scaling.") + name));
  }
  if (n.type == "linear" || n.scales()) return {{"rope_type", "linear"}, {"factor", n.factor}};
  return {{"rope_type", "default"}};
}

// Code of multi-head latent attention assumes that the file's attn_factor contains the gain, and
// multiplies all scores by its square, whatever the type.
void scale_scores(GgufKeys& keys, const LlamaCppArchitecture* row, const GgufFactors& n,
                  RopeScaling& scaling) {
  if (!row || !row->scales_scores) return;
  const double log = keys.number(keys.own("rope.scaling.yarn_log_multiplier"), 0, 1e6).value_or(0);
  const bool read = n.type == "yarn" && log != 0 && row->log_unit > 0;
  const double own = read && row->mscale_is_all_dim ? decimal(log) / row->log_unit : 1;
  const double factor = n.scales() ? n.factor : 1;
  scaling.score_factor = std::pow(rounded_gain(n.attention * yarn_temperature(factor, own)), 2);
  if (read || scaling.score_factor == 1) return;
  scaling.warnings.push_back(llama_cpp_version() + "'s code for " + keys.arch() +
                             " multiplies all scores by " + json(scaling.score_factor).dump() +
                             " although the file has no rope.scaling.yarn_log_multiplier "
                             "(mscale_all_dim)");
}

// Replaces the fields of a config.json by the keys of the file.
void say_in_gguf_words(std::vector<std::string>& warnings) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kWords = {
      {{"original_max_position_embeddings", "rope.scaling.original_context_length"},
       {"max_position_embeddings", "context_length"},
       {"attention_factor says", "rope.scaling.attn_factor says"}}};
  for (std::string& warning : warnings) {
    for (const auto& [from, to] : kWords) {
      for (size_t at = warning.find(from); at != std::string::npos; at = warning.find(from, at)) {
        warning.replace(at, from.size(), to);
        at += to.size();
      }
    }
  }
}

// Llama 4's query law under Mistral's keys.
void read_temperature(GgufKeys& keys, const LlamaCppArchitecture* row, int64_t original,
                      RopeConfig& config) {
  const auto scale = keys.number(keys.own("attention.temperature_scale"), 0, 1e6);
  const int64_t length = keys.length(keys.own("attention.temperature_length"));
  if (!scale || *scale == 0) return;
  if (row && !row->temperature_keys) {
    config.scaling.warnings.push_back("attention.temperature_scale is in the file, but " +
                                      llama_cpp_version() + " does not read it for " + keys.arch());
    return;
  }
  const int64_t known = length > 0 ? length : original > 0 ? original : config.max_length;
  if (known == 0) {
    GgufKeys::bad(keys.own("attention.temperature_length"),
                  "a length, or rope.scaling.original_context_length, beside temperature_scale");
  }
  config.scaling.query_scale = {QueryLaw::kMinistral, known, *scale};
}

}  // namespace

RopeScaling read_gguf_scaling(GgufKeys& keys, const LlamaCppArchitecture* row, RopeConfig& config) {
  const GgufFactors n = numbers_of(keys);
  const int64_t pairs = config.rotary_dim / 2;
  std::vector<std::string> warnings;
  config.scaling = read_scaling(
      scaling_of(keys, row, n, config.max_length, warnings),
      {.base = config.base, .pairs = pairs, .max_length = config.max_length, .from_file = true},
      "gguf: " + keys.own("rope.scaling"));
  const GgufDivisors divisors = gguf_divisors(keys, pairs, warnings);
  RopeScaling unscaled = unscaled_of(row, config, n, divisors);
  take_divisors(keys, n, divisors, config, warnings);
  scale_scores(keys, row, n, config.scaling);
  say_in_gguf_words(config.scaling.warnings);
  std::ranges::copy(warnings, std::back_inserter(config.scaling.warnings));
  read_temperature(keys, row, n.original, config);
  return unscaled;
}

}  // namespace sextant
