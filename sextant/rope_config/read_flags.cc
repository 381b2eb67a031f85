// vLLM's command line: fields of config.json, overridden.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/rope_config/engine_flags.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/flags.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/shell_words.h"

namespace sextant {
namespace {

using nlohmann::json;

// Interpolation has no field for the original length.
void assume_trained_length(RopeConfig& config) {
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  const auto* linear = fixed ? std::get_if<Linear>(fixed) : nullptr;
  if (!linear || linear->factor == 1 || config.serving_length == 0) return;
  if (trained_length(config) > 0) return;
  config.scaling.original_length = std::max<int64_t>(
      1, std::llround(static_cast<double>(config.serving_length) / linear->factor));
  config.scaling.warnings.push_back(
      "flags do not say what length the model was trained on; the context divided by the factor, " +
      std::to_string(config.scaling.original_length) + ", is taken for it");
}

void warn_beyond_factor(RopeConfig& config, const std::string& option) {
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  const auto* yarn = fixed ? std::get_if<Yarn>(fixed) : nullptr;
  if (!yarn || yarn->factor == 1) return;  // 1: the file may have another factor
  const double most = yarn->factor * static_cast<double>(yarn->original_length);
  if (static_cast<double>(config.serving_length) <= most) return;
  config.scaling.warnings.push_back(option + " is " + std::to_string(config.serving_length) +
                                    ", more than factor times the original length, " +
                                    std::to_string(static_cast<int64_t>(most)) +
                                    ": YaRN was not made for positions beyond that");
}

// An option's length is the length to serve and never the training length.
void take_serving_length(RopeConfig& config, int64_t length, const std::string& option) {
  config.serving_length = length;
  if (config.max_length == 0) config.max_length = length;
  assume_trained_length(config);
  warn_beyond_factor(config, option);
  if (!config.rotates || trained_length(config) > 0) return;
  config.scaling.warnings.push_back(
      "the length that the model was trained on is not known: flags do not say it" +
      (length > 0 ? " (" + option + " is how far to read)" : "") + ", and the model's file does");
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

// vLLM's lengths may end in k, m or g (powers of 1000) or in K, M or G (powers of 1024); a negative
// length and "auto" select the default.
int64_t max_model_len(CommandLine& flags) {
  const std::string name = "--max-model-len";
  if (!flags.has(name)) return 0;
  const std::string text = flags.take(name);
  if (text == "auto") return 0;
  static const std::string_view units = "kmgKMG";
  const size_t unit = text.empty() ? std::string_view::npos : units.find(text.back());
  const bool has_unit = unit != std::string_view::npos;
  double value = NAN;
  const char* end = text.data() + text.size() - (has_unit ? 1 : 0);
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || !(std::fabs(value) <= 1e15)) {
    fail("flags: " + name + ": expected a length like 32768 or 32K, but got \"" +
         text.substr(0, 60) + "\"");
  }
  if (has_unit) value *= std::pow(unit < 3 ? 1000 : 1024, 1 + static_cast<double>(unit % 3));
  return length_of_flag(std::max(0.0, value), name);
}

// The object in --hf-overrides with the language model's fields, and its path; the whole object if
// there is none.
std::pair<json*, std::string> language_model_of(json& overrides) {
  for (const char* name : {"text_config", "llm_config", "language_config"}) {
    if (overrides.contains(name) && overrides[name].is_object()) return {&overrides[name], name};
  }
  if (overrides.contains("thinker_config") && overrides["thinker_config"].is_object()) {
    auto [inner, name] = language_model_of(overrides["thinker_config"]);
    return {inner, name.empty() ? "thinker_config" : "thinker_config." + name};
  }
  return {&overrides, ""};
}

// vLLM sets one field for these two names, in their order on the command line.
void refuse_two_scalings(const json& model) {
  if (!model.contains("rope_parameters") || !model.contains("rope_scaling")) return;
  if (model.at("rope_parameters") == model.at("rope_scaling")) return;
  fail(
      "flags: --hf-overrides: rope_scaling: expected none beside another rope_parameters, as vLLM "
      "takes the later of the two, but got " +
      model.at("rope_scaling").dump());
}

// Adds the values of separate flags if the overrides lack them.
void add_flags(json& model, const json& flags) {
  for (const auto& [name, value] : flags.items()) {
    const bool scaling = name == "rope_scaling";
    const std::string there =
        scaling && model.contains("rope_parameters") ? "rope_parameters" : name;
    if (!model.contains(there)) {
      model[name] = value;
    } else if ((scaling || name == "rope_theta") && model.at(there) != value) {
      fail("flags: --" + std::string(scaling ? "rope-scaling" : "rope-theta") +
           ": expected none beside another " + there + " in --hf-overrides, " +
           model.at(there).dump() + ", but got " + value.dump());
    }
  }
}

// Warns about fields at the top that the language model's object also has.
void warn_of_two_places(const json& config, const json& model, const std::string& place,
                        std::vector<std::string>& warnings) {
  if (place.empty()) return;
  const std::string reason = " stands at the top of --hf-overrides, and other fields in " + place +
                             ": a model that has a " + place +
                             " takes the latter, as is said here, and others the former, ";
  for (const char* name :
       {"rope_scaling", "rope_parameters", "rope_theta", "max_position_embeddings"}) {
    if (!config.contains(name) || (model.contains(name) && model.at(name) == config.at(name))) {
      continue;
    }
    warnings.push_back(name + reason);
    warnings.back() += config.at(name).dump();
  }
}

std::string type_of(const json& scaling) {
  for (const char* name : {"rope_type", "type"}) {
    if (scaling.contains(name) && scaling.at(name).is_string()) {
      return scaling.at(name).get<std::string>();
    }
  }
  return "";
}

void need_original_length(const json& scaling, const json& model, const std::string& type) {
  if (type != "yarn" && type != "deepseek_yarn" && type != "llama3" && type != "longrope") return;
  if (scaling.contains("original_max_position_embeddings")) return;
  for (const char* name : {"original_max_position_embeddings", "max_position_embeddings"}) {
    if (model.contains(name)) return;
  }
  fail("flags: original_max_position_embeddings: expected it beside rope_type " + type +
       " in --hf-overrides, as vLLM takes the max_position_embeddings of the model's file for it, "
       "which is not known here, and never --max-model-len, but got none");
}

// Converts a scaling to the meaning that vLLM gives its fields.
void take_vllms_meaning(json& scaling, const json& model, std::vector<std::string>& warnings) {
  const std::string type = type_of(scaling);
  need_original_length(scaling, model, type);
  // With this type vLLM's code for latent attention also scales the scores.
  if (type == "deepseek_yarn") scaling.emplace("scale_scores", true);
  if (type != "dynamic" || scaling.contains("alpha") || scaling.contains("max_trained_positions")) {
    return;
  }
  scaling["rope_type"] = "default";
  for (const char* idle : {"type", "factor", "original_max_position_embeddings"}) {
    scaling.erase(idle);
  }
  warnings.push_back("rope_type dynamic is plain RoPE here. " + engine_fact("vllm.dynamic"));
}

void take_vllms_meanings(json& model, std::vector<std::string>& warnings) {
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    if (!model.contains(name) || !model.at(name).is_object()) continue;
    json& scaling = model[name];
    bool nested = false;
    for (json& inner : scaling) {
      if (!inner.is_object()) continue;
      nested = true;
      take_vllms_meaning(inner, model, warnings);
    }
    if (!nested) take_vllms_meaning(scaling, model, warnings);
  }
}

void warn_of_lengths(const json& model, int64_t serving, std::vector<std::string>& warnings) {
  const auto found = model.find("max_position_embeddings");
  if (serving == 0 || found == model.end() || !found->is_number() || *found == serving) return;
  warnings.push_back("--max-model-len says " + std::to_string(serving) +
                     " and max_position_embeddings in --hf-overrides " + found->dump() +
                     ": the latter is the model's length, and the former how far to read");
}

}  // namespace

json config_of_flags(const Overrides& overrides, double base) {
  json config = json::object();
  if (overrides.head_dim > 0) config["head_dim"] = overrides.head_dim;
  if (base > 0) config["rope_theta"] = base;
  return config;
}

std::vector<RopeConfig> read_config_of_flags(const json& config, const Overrides& overrides) {
  try {
    return read_hugging_face(config, overrides);
  } catch (const Error& error) {
    const std::string what = error.what(), where = "config.json: ";
    fail(what.starts_with(where) ? "flags: " + what.substr(where.size()) : what);
  }
}

int64_t length_of_flag(double value, const std::string& name) {
  if (value <= static_cast<double>(kLongestSequence)) return static_cast<int64_t>(value);
  fail("flags: " + name + ": expected a length up to " + std::to_string(kLongestSequence) +
       ", but got " + json(value).dump());
}

bool looks_like_flags(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool variable = word.starts_with("LLAMA_ARG_") && word.find('=') != std::string::npos;
    if (is_flag(word) || variable) return text.find('\0') == std::string::npos;
  }
  return false;
}

std::vector<RopeConfig> read_flags(const std::string& text, const Overrides& overrides) {
  return read_flags(shell_words(text), overrides);
}

std::vector<RopeConfig> read_flags(const std::vector<std::string>& words,
                                   const Overrides& overrides) {
  CommandLine flags(words);
  const bool vllm = flags.is_vllm();
  EngineConfigs read =
      vllm ? read_vllm_flags(flags, overrides) : read_llama_cpp_flags(flags, overrides);
  for (RopeConfig& config : read.configs) {
    take_serving_length(config, read.serving_length, read.option);
    if (flags.passed_over().empty()) continue;
    config.scaling.warnings.push_back("passed over, as they are not about rotary positions: " +
                                      listed(flags.passed_over()));
  }
  return read.configs;
}

EngineConfigs read_vllm_flags(CommandLine& flags, const Overrides& overrides) {
  std::vector<std::string> warnings;
  const double base = flags.number_from_0("--rope-theta");
  EngineConfigs read{.serving_length = max_model_len(flags), .option = "--max-model-len"};
  json config = flags.take_object("--hf-overrides");
  json own = config_of_flags(overrides, base);
  if (json scaling = flags.take_object("--rope-scaling"); !scaling.empty()) {
    own["rope_scaling"] = std::move(scaling);
  }
  if (base > 0 || own.contains("rope_scaling")) warnings.push_back(engine_fact("vllm.rope_flags"));
  const auto [model, place] = language_model_of(config);
  refuse_two_scalings(*model);
  add_flags(*model, own);
  warn_of_two_places(config, *model, place, warnings);
  warn_of_lengths(*model, read.serving_length, warnings);
  take_vllms_meanings(*model, warnings);
  flags.finish();
  read.configs = read_config_of_flags(config, overrides);
  for (RopeConfig& group : read.configs) {
    std::ranges::copy(warnings, std::back_inserter(group.scaling.warnings));
  }
  return read;
}

}  // namespace sextant
