#include "sextant/rope_config/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "sextant/error.h"
#include "sextant/rope_config/command_line.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/language_model.h"

namespace sextant {
namespace {

using nlohmann::json;

json config_of(const Overrides& overrides, double base, double length) {
  json config = json::object();
  if (overrides.head_dim > 0) config["head_dim"] = overrides.head_dim;
  if (base > 0) config["rope_theta"] = base;
  if (length > 0) config["max_position_embeddings"] = length;
  return config;
}

// The configuration was made of flags: errors say so.
std::vector<RopeConfig> read_config(const json& config, const Overrides& overrides) {
  try {
    return read_hugging_face(config, overrides);
  } catch (const Error& error) {
    const std::string what = error.what(), where = "config.json: ";
    fail(what.starts_with(where) ? "flags: " + what.substr(where.size()) : what);
  }
}

// vLLM's lengths may end in k, m or g, and in K, M or G of 1024; below 0 is its word for the
// default.
double max_model_len(CommandLine& flags) {
  const std::string name = "--max-model-len";
  if (!flags.has(name)) return 0;
  const std::string text = flags.take(name);
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
  return std::max(0.0, value);
}

// The object of --hf-overrides that says the language model's fields; the whole if none does.
json& language_model_of(json& overrides) {
  for (const char* name : {"text_config", "llm_config", "language_config"}) {
    if (overrides.contains(name) && overrides[name].is_object()) return overrides[name];
  }
  if (overrides.contains("thinker_config") && overrides["thinker_config"].is_object()) {
    return language_model_of(overrides["thinker_config"]);
  }
  return overrides;
}

// The values of flags of their own, where the overrides have none.
void add_flags(json& model, const json& flags, std::vector<std::string>& warnings) {
  for (const auto& [name, value] : flags.items()) {
    if (!model.contains(name)) {
      model[name] = value;
    } else if (name == "max_position_embeddings" && model.at(name) != value) {
      warnings.push_back("--max-model-len says " + value.dump() +
                         " and max_position_embeddings in --hf-overrides " + model.at(name).dump() +
                         ": the latter is the model's length, and --length judges by another");
    } else if (name == "rope_theta" && model.at(name) != value) {
      fail("flags: --rope-theta: expected none beside another rope_theta in --hf-overrides, " +
           model.at(name).dump() + ", but got " + value.dump());
    }
  }
}

std::vector<RopeConfig> read_vllm(CommandLine& flags, const Overrides& overrides) {
  std::vector<std::string> warnings;
  const double base = flags.number_from_0("--rope-theta"), length = max_model_len(flags);
  json config = flags.take_object("--hf-overrides");
  json own = config_of(overrides, base, length);
  if (json scaling = flags.take_object("--rope-scaling"); !scaling.empty()) {
    own["rope_scaling"] = std::move(scaling);
  }
  if (base > 0 || own.contains("rope_scaling")) warnings.push_back(engine_fact("vllm.rope_flags"));
  add_flags(language_model_of(config), own, warnings);
  flags.finish();
  std::vector<RopeConfig> settings = read_config(config, overrides);
  for (RopeConfig& setting : settings) {
    std::ranges::copy(warnings, std::back_inserter(setting.scaling.warnings));
  }
  return settings;
}

std::string kind_of(CommandLine& flags, double factor) {
  if (!flags.has("--rope-scaling")) return factor == 1 ? "none" : "linear";
  std::string kind = flags.take("--rope-scaling");
  if (kind != "none" && kind != "linear" && kind != "yarn") {
    fail("flags: --rope-scaling: expected none, linear or yarn, but got \"" + kind.substr(0, 60) +
         "\"");
  }
  return kind;
}

// By which positions are divided; 1: they are not.
double factor_of(CommandLine& flags) {
  double factor = flags.number("--rope-scale", 1);
  const char* name = "--rope-scale";
  if (flags.has("--rope-freq-scale")) {
    name = "--rope-freq-scale";
    factor = 1 / flags.number(name, 1);
  }
  if (!(factor >= 1 && factor <= 1e9)) {
    fail(std::string("flags: ") + name +
         ": expected a number that makes frequencies 1 to 1e9 times as slow");
  }
  return factor;
}

void refuse_self_extend(CommandLine& flags) {
  const double group = flags.number("--grp-attn-n", 1);
  flags.number("--grp-attn-w", 512);
  if (group == 1) return;
  fail(
      "flags: --grp-attn-n: expected 1, as Self-Extend groups positions and changes no frequency, "
      "but got " +
      json(group).dump());
}

// The length that YaRN was made for, where no flag says it.
double assumed_length(double length, double factor, std::vector<std::string>& warnings) {
  const double assumed = std::floor(length / factor);
  if (assumed < 1) {
    fail(
        "flags: --yarn-orig-ctx: expected the length that the model was trained on, here or as -c "
        "or --length times the factor, but got none; llama.cpp takes the file's "
        "original_context_length, else its context_length");
  }
  warnings.push_back(
      "--yarn-orig-ctx is missing: llama.cpp takes the model file's "
      "original_context_length, else its context_length, never -c. Which that is is "
      "not known here; the length to read divided by the factor, " +
      std::to_string(static_cast<int64_t>(assumed)) + ", is taken for it: --yarn-orig-ctx says it");
  return assumed;
}

void read_yarn(CommandLine& flags, double factor, double length, json& scaling,
               std::vector<std::string>& warnings) {
  const double ext = flags.number("--yarn-ext-factor", -1);
  if (ext != 1 && ext != -1) {
    fail("flags: --yarn-ext-factor: expected 1, the whole ramp, but got " + json(ext).dump());
  }
  // Below 0 is llama.cpp's word for the default.
  const double fast = flags.number("--yarn-beta-fast", -1);
  const double slow = flags.number("--yarn-beta-slow", -1);
  scaling["beta_fast"] = fast < 0 ? 32 : fast;
  scaling["beta_slow"] = slow < 0 ? 1 : slow;
  const double attention = flags.number("--yarn-attn-factor", -1);
  if (attention >= 0 && attention != 1) {
    warnings.push_back(engine_fact("llama.cpp.yarn_attn_factor"));
    warnings.push_back(engine_fact("ik_llama.cpp.yarn_attn_factor"));
  }
  double original = flags.number_from_0("--yarn-orig-ctx");
  if (original == 0) original = assumed_length(length, factor, warnings);
  scaling["original_max_position_embeddings"] = std::floor(original);
}

// Warnings about a config.json that do not concern flags.
bool is_about_other_engines(const std::string& warning) {
  return warning.starts_with("not audited");
}

// A warning in the words of llama.cpp's flags.
std::string in_flags(std::string warning) {
  constexpr std::pair<const char*, const char*> kWords[] = {
      {"original_max_position_embeddings", "--yarn-orig-ctx"},
      {"max_position_embeddings", "-c"},
      {"attention_factor", "rope.scaling.attn_factor"},
      {"beta_fast", "--yarn-beta-fast"},
      {"beta_slow", "--yarn-beta-slow"},
      {"rope_theta", "--rope-freq-base"}};
  for (const auto& [key, flag] : kWords) {
    for (size_t at = warning.find(key); at != std::string::npos;
         at = warning.find(key, at + std::string_view(flag).size())) {
      warning.replace(at, std::string_view(key).size(), flag);
    }
  }
  return warning;
}

std::vector<RopeConfig> read_llama_cpp(CommandLine& flags, const Overrides& overrides) {
  const double base = flags.number_from_0("--rope-freq-base");
  const double length = flags.number_from_0("--ctx-size");
  if (overrides.head_dim <= 0) {
    fail("flags: head_dim: expected --head-dim N, as flags do not say the size of heads");
  }
  if (base == 0 && overrides.base <= 0) {
    fail(
        "flags: --rope-freq-base: expected the base of the frequencies, here or as --base; the "
        "model's file has it");
  }
  refuse_self_extend(flags);
  const double factor = factor_of(flags);
  const std::string kind = kind_of(flags, factor);
  json scaling = {{"rope_type", kind == "none" ? "default" : kind}};
  if (kind != "none") scaling["factor"] = factor;
  std::vector<std::string> warnings;
  const double target = length > 0 ? length : static_cast<double>(overrides.length);
  if (kind == "yarn") read_yarn(flags, factor, target, scaling, warnings);
  for (const char* name : {"--yarn-orig-ctx", "--yarn-ext-factor", "--yarn-attn-factor",
                           "--yarn-beta-slow", "--yarn-beta-fast"}) {
    if (flags.has(name)) {
      fail(std::string("flags: ") + name + ": expected --rope-scaling yarn beside it");
    }
  }
  flags.finish();
  json config = config_of(overrides, base, length);
  config["rope_scaling"] = scaling;
  std::vector<RopeConfig> settings = read_config(config, overrides);
  for (RopeConfig& setting : settings) {
    std::erase_if(setting.scaling.warnings, is_about_other_engines);
    std::ranges::transform(setting.scaling.warnings, setting.scaling.warnings.begin(), in_flags);
    std::ranges::copy(warnings, std::back_inserter(setting.scaling.warnings));
  }
  return settings;
}

// Engines are told how far to read. Interpolation has no field for the length that it divides.
void set_trained_length(RopeConfig& setting) {
  const auto* fixed = std::get_if<Stretch>(&setting.scaling.stretch);
  const auto* linear = fixed ? std::get_if<Linear>(fixed) : nullptr;
  if (!linear || setting.max_length == 0) return;
  setting.scaling.original_length =
      std::max<int64_t>(1, std::llround(static_cast<double>(setting.max_length) / linear->factor));
  setting.scaling.warnings.push_back(
      "flags do not say what length the model was trained on; the context divided by the factor, " +
      std::to_string(setting.scaling.original_length) + ", is taken for it");
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace

bool looks_like_flags(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (is_flag(word)) return text.find('\0') == std::string::npos;
  }
  return false;
}

std::vector<RopeConfig> read_flags(const std::string& text, const Overrides& overrides) {
  CommandLine flags(text);
  const bool vllm = flags.is_vllm();
  std::vector<RopeConfig> settings =
      vllm ? read_vllm(flags, overrides) : read_llama_cpp(flags, overrides);
  for (RopeConfig& setting : settings) {
    set_trained_length(setting);
    if (flags.passed_over().empty()) continue;
    setting.scaling.warnings.push_back("passed over, as they are not about rotary positions: " +
                                       listed(flags.passed_over()));
  }
  return settings;
}

}  // namespace sextant
