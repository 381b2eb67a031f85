#include "sextant/lab/result/engine_words.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sextant/base/error.h"
#include "sextant/rope_config/write_config.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

// The frequencies of a candidate in transformers' words.
struct Rotation {
  double base = 0;         // 0: as it was
  json scaling = {};       // null: none
  bool keeps_max = false;  // the scaling takes L from max_position_embeddings
};

std::optional<Rotation> rotation_of(const StretchCandidate& candidate, const RopeConfig& group) {
  if (candidate.method != "rope") return std::nullopt;
  const json options = json::parse(candidate.options);
  if (options.contains("query_scale")) return std::nullopt;
  if (!options.contains("stretch")) return Rotation{};
  json stretch = options.at("stretch");
  const auto type = stretch.at("rope_type").get<std::string>();
  if (type == "linear" || type == "yarn" || type == "llama3")
    return Rotation{.scaling = std::move(stretch)};
  if (type == "dynamic" && options.value("dynamic", "") == "length")
    return Rotation{.scaling = std::move(stretch), .keeps_max = true};
  if (type == "ntk") {  // another base: b f^(d / (d - 2)) (bloc97 2023)
    const auto channels = static_cast<double>(group.rotary_dim);
    return Rotation{.base = group.base * std::pow(stretch.at("factor").get<double>(),
                                                  channels / (channels - 2))};
  }
  return std::nullopt;
}

// The configuration with another rotation. Transformers 5 has one object for base and scaling.
json with_rotation(json config, const Rotation& rotation, int64_t length) {
  if (!rotation.keeps_max) config["max_position_embeddings"] = length;
  const json before = config.value("rope_parameters", json());
  if (before.is_object()) {
    json parameters = {{"rope_type", "default"}};
    if (!rotation.scaling.is_null()) parameters = rotation.scaling;
    for (const char* kept : {"rope_theta", "partial_rotary_factor"})
      if (before.contains(kept)) parameters[kept] = before.at(kept);
    if (rotation.base > 0) parameters["rope_theta"] = rotation.base;
    config["rope_parameters"] = std::move(parameters);
    return config;
  }
  if (rotation.base > 0) config["rope_theta"] = rotation.base;
  config["rope_scaling"] = rotation.scaling;
  return config;
}

Words written(const ReadRopeConfig& read, const std::string& to) {
  try {
    return {.text = write_rope_config(read, to)};
  } catch (const Error& error) {
    return {.obstacle = error.what()};
  }
}

EngineWords no_words(const std::string& obstacle) {
  const Words none{.obstacle = obstacle};
  return {.hugging_face = none, .vllm = none, .llama_cpp = none};
}

}  // namespace

EngineWords engine_words(const Checkpoint& checkpoint, const StretchCandidate& candidate,
                         int64_t length) {
  const ReadRopeConfig& read = checkpoint.rope;
  if (read.configs.size() != 1 || !read.place.empty())
    return no_words("its configuration has several groups of layers or is nested");
  const std::optional<Rotation> rotation = rotation_of(candidate, read.configs.front());
  if (!rotation) return no_words("no engine's configuration has words for " + candidate.name);
  try {
    // Of a GGUF file, the rotary part of a config.json.
    const std::string config = read.json.empty() ? write_rope_config(read, "hf5") : read.json;
    const json changed = with_rotation(json::parse(config), *rotation, length);
    const ReadRopeConfig stretched = read_rope_config_bytes(changed.dump(2) + "\n", {});
    EngineWords words{.hugging_face = {.text = changed.dump(2) + "\n"},
                      .vllm = written(stretched, "vllm"),
                      .llama_cpp = written(stretched, "llama.cpp")};
    return words;
  } catch (const Error& error) {
    return no_words(error.what());
  }
}

EngineChoices first_words(const Checkpoint& checkpoint, std::span<const StretchCandidate> ordered,
                          int64_t length) {
  EngineChoices found;
  const auto take = [](EngineChoice& choice, const std::string& name, const Words& words) {
    if (!choice.candidate.empty()) return;
    if (!words.text.empty()) choice.candidate = name;
    if (!words.text.empty() || choice.words.obstacle.empty()) choice.words = words;
  };
  for (const StretchCandidate& candidate : ordered) {
    const EngineWords words = engine_words(checkpoint, candidate, length);
    take(found.hugging_face, candidate.name, words.hugging_face);
    take(found.vllm, candidate.name, words.vllm);
    take(found.llama_cpp, candidate.name, words.llama_cpp);
  }
  return found;
}

}  // namespace sextant::lab
