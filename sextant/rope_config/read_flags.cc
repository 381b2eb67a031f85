#include "sextant/rope_config/flags.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sextant/base/error.h"
#include "sextant/rope_config/engine_flags.h"
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

}  // namespace sextant
