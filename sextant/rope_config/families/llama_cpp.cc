#include "sextant/rope_config/families/llama_cpp.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sextant/base/error.h"
#include "sextant/rope_config/families/family.h"

namespace sextant {

extern const std::string_view kLlamaCppFamilies;

namespace {

using nlohmann::json;
using Rotates = LlamaCppArchitecture::Rotates;

Rotates rotates_of(const std::string& words) {
  static const std::map<std::string, Rotates> all = {
      {"", Rotates::kAll},
      {"all but every 4th", Rotates::kAllButEvery4th},
      {"all but every 4th from 0", Rotates::kAllButEvery4thFrom0},
      {"windows", Rotates::kWindows},
      {"windows or all", Rotates::kWindowsOrAll},
      {"windows and dense", Rotates::kWindowsAndDense},
      {"finetuned", Rotates::kFinetuned},
      {"pattern", Rotates::kPattern},
  };
  const auto found = all.find(words);
  if (found == all.end()) fail("llama.cpp.json: rotates: expected known words, but got " + words);
  return found->second;
}

LlamaCppArchitecture::Window window_of(const json& row) {
  LlamaCppArchitecture::Window window{.pattern = row.value("pattern", int64_t{0}),
                                      .full_first = row.value("full_first", false),
                                      .size = row.value("size", int64_t{0})};
  const json& base = row.at("local_base");
  window.local_base = base.is_number() ? base.get<double>() : 0;
  window.scaled = row.at("scaled");
  window.own_base = row.at("own_base");
  window.chunks = row.value("chunks", false);
  window.both_sides = row.value("sides", "") == "both";
  window.fixed = row.value("fixed", int64_t{0});
  window.if_layers = row.value("if_layers", int64_t{0});
  window.everywhere = row.value("everywhere", false);
  window.gain = row.value("gain", true);
  return window;
}

LlamaCppArchitecture::YarnKeys yarn_keys_of(const json& row) {
  LlamaCppArchitecture::YarnKeys keys{.betas = row.contains("beta_fast"),
                                      .ext_factor = row.contains("ext_factor")};
  keys.beta_fast = row.value("beta_fast", keys.beta_fast);
  keys.beta_slow = row.value("beta_slow", keys.beta_slow);
  return keys;
}

void read_scores(const json& row, LlamaCppArchitecture& to) {
  const std::string log = row.value("yarn_log_multiplier", "");
  to.log_unit = log == "a tenth" ? 0.1 : log == "whole" ? 1 : 0;
  to.scales_scores = row.value("scales_scores", false);
  to.mscale_is_all_dim = row.value("mscale", json()) == json("mscale_all_dim");
  if (const auto law = row.find("query_law"); law != row.end()) {
    to.temperature_keys = law->value("keys", false);
    to.law_strength = law->value("strength", 0.0);
    to.law_length = law->value("length", int64_t{0});
  }
  if (const auto scale = row.find("softmax_scale"); scale != row.end()) {
    if (scale->is_number()) to.softmax_scale = scale->get<double>();
    if (scale->is_object()) {
      to.layers_scaled_by_width = scale->value("by_width_if_layers", int64_t{0});
      to.scale_key = scale->value("key", "");
      to.softmax_scale = scale->value("else", 0.0);
    }
  }
  to.scale_in_weights = row.value("scale_in_weights", false);
  to.attention_scale = row.value("attention_scale", false);
}

LlamaCppArchitecture row_of(const json& row) {
  LlamaCppArchitecture to{.name = row.at("architecture"),
                          .types = row.at("types"),
                          .source = row.at("source"),
                          .runs = row.value("runs", true),
                          .instead = row.value("instead", "")};
  const json by_layers = row.value("by_layers", json::object());
  for (const auto& item : by_layers.items()) {
    to.by_layers[item.key() == "else" ? 0 : std::stoll(item.key())] = item.value();
  }
  to.instead_key = row.value("instead_key", "");
  to.learned_tensor = row.value("learned_tensor", "");
  const std::string pairs = row.value("pairs", "");
  if (pairs == "interleaved") to.pairing = Pairing::kInterleaved;
  if (pairs == "half-split") to.pairing = Pairing::kHalfSplit;
  to.axes = row.value("axes", "");
  to.needs_axes = row.value("needs_axes", false);
  if (row.contains("yarn_keys")) to.yarn_keys = yarn_keys_of(row.at("yarn_keys"));
  to.rotates = rotates_of(row.value("rotates", ""));
  if (row.contains("window")) to.window = window_of(row.at("window"));
  read_scores(row, to);
  to.divisors_in_full_only = row.value("divisors", "") == "full";
  to.alpha = row.value("alpha", false);
  return to;
}

const json& table() {
  static const json all = json::parse(kLlamaCppFamilies);
  return all;
}

const std::vector<LlamaCppArchitecture>& rows() {
  static const std::vector<LlamaCppArchitecture> all = [] {
    std::vector<LlamaCppArchitecture> read;
    for (const json& row : table().at("families")) read.push_back(row_of(row));
    return read;
  }();
  return all;
}

}  // namespace

const LlamaCppArchitecture* find_architecture(const std::string& name) {
  const auto found = std::ranges::find(rows(), name, &LlamaCppArchitecture::name);
  return found == rows().end() ? nullptr : &*found;
}

const LlamaCppArchitecture* architecture_of(const std::string& model_type, bool both_sides) {
  const LlamaCppArchitecture* found = nullptr;
  for (const LlamaCppArchitecture& row : rows()) {
    if (std::ranges::find(row.types, model_type) == row.types.end()) continue;
    if ((row.window && row.window->both_sides) == both_sides) return &row;
    if (found == nullptr) found = &row;
  }
  return found;
}

const std::vector<OtherProgram>& other_programs() {
  static const std::vector<OtherProgram> all = [] {
    std::vector<OtherProgram> read;
    for (const json& program : table().at("other_programs")) {
      read.push_back({.name = program.at("program"),
                      .source = program.at("source"),
                      .architectures = program.at("architectures"),
                      .keys = program.at("keys"),
                      .bases = program.at("bases"),
                      .advice = program.at("advice")});
    }
    return read;
  }();
  return all;
}

std::optional<Pairing> pairing_in_transformers(const LlamaCppArchitecture& row) {
  std::optional<Pairing> all;
  for (const std::string& type : row.types) {
    const Family* family = find_family(type);
    if (!family || family->pairing.empty()) continue;
    const bool interleaved = family->pairing == "'interleaved'";
    if (!interleaved && family->pairing != "'half-split'") return {};
    const Pairing own = interleaved ? Pairing::kInterleaved : Pairing::kHalfSplit;
    if (all && *all != own) return {};
    all = own;
  }
  return all;
}

std::string llama_cpp_version() {
  return table().at("code").get<std::string>() + " " + table().at("version").get<std::string>();
}

}  // namespace sextant
