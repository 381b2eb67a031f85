// A folder is read without its weights: the configuration, the sizes of the files, and the reasons
// for which it cannot be measured or stretched.
#include "sextant/lab/plan/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/data/masked_text.h"
#include "sextant/rope_config/config_path.h"
#include "sextant/rope_config/explain.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kBytes = 256;
constexpr const char* kIndexFile = "model.safetensors.index.json";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

[[noreturn]] void refuse(const std::string& command, const fs::path& path,
                         const std::string& problem) {
  fail(fmt::format("{}: {}: {}", command, path.string(), problem));
}

// Empty for a file that is no JSON object.
json object_of(const fs::path& path) {
  try {
    json object = read_json(path);
    return object.is_object() ? object : json::object();
  } catch (const Error&) {
    return json::object();
  }
}

void check_architecture(const std::string& command, const fs::path& path, const json& config) {
  if (config.value("is_encoder_decoder", json()) == true)
    refuse(command, path / "config.json",
           "is_encoder_decoder: expected false, a causal language model, but got true");
  const json names = config.value("architectures", json());
  if (!names.is_array() || names.empty() || !names[0].is_string()) return;
  const auto name = names[0].get<std::string>();
  for (const char* kind : {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"})
    if (name.ends_with(kind)) return;
  refuse(command, path / "config.json",
         "architectures: expected a causal language model (...ForCausalLM), but got " + name);
}

// The files that hold the weights. Throws Error if one that is listed is missing.
std::vector<fs::path> weight_files(const std::string& command, const fs::path& folder) {
  if (fs::exists(folder / kIndexFile)) {
    const json map = object_of(folder / kIndexFile).value("weight_map", json());
    std::set<std::string> names;
    if (map.is_object()) {
      for (const json& name : map)
        if (name.is_string()) names.insert(name.get<std::string>());
    }
    if (names.empty()) refuse(command, folder / kIndexFile, "expected a weight_map with files");
    std::vector<fs::path> files;
    for (const std::string& name : names) {
      if (!is_file(folder / name))
        refuse(command, folder / kIndexFile, "lists " + name + ", which is not there");
      files.push_back(folder / name);
    }
    return files;
  }
  for (const char* name : {"model.safetensors", "pytorch_model.bin"}) {
    if (is_file(folder / name)) return {folder / name};
  }
  if (is_file(folder / "pytorch_model.bin.index.json"))
    return {folder / "pytorch_model.bin.index.json"};
  refuse(command, folder,
         std::string("expected weights (model.safetensors or ") + kIndexFile + "), but has none");
}

json sizes_of(const std::vector<fs::path>& files) {
  json sizes = json::object();
  for (const fs::path& file : files) sizes[file.filename().string()] = fs::file_size(file);
  return sizes;
}

bool is_folder_of_model(const fs::path& path) { return fs::exists(path / "config.json"); }

int64_t train_length_of(const ReadRopeConfig& read) {
  int64_t longest = 0;
  for (const RopeConfig& group : read.configs) longest = std::max(longest, trained_length(group));
  return longest;
}

}  // namespace

fs::path model_path(const fs::path& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

bool is_model_of_bytes(const fs::path& path) {
  if (is_file(path)) return false;
  if (!is_folder_of_model(path)) {
    return !fs::is_directory(path) ||
           std::ranges::none_of(fs::directory_iterator(path), [](const auto& entry) {
             return entry.path().extension() == ".gguf";
           });
  }
  const json config = read_json(path / "config.json");
  if (!config.is_object()) return false;
  if (config.value("model_type", json()) == "sextant") return true;
  const json vocabulary = config.value("vocab_size", json());
  return vocabulary == kBytes || vocabulary == kMaskedVocabulary;
}

Checkpoint read_checkpoint(const std::string& command, const fs::path& path) {
  Checkpoint found;
  found.path = model_path(path);
  found.name = found.path.filename().string();
  if (!fs::exists(path))
    refuse(command, path, "expected a folder or a .gguf file, but there is none");
  std::string config;
  try {
    config = config_path(path.string());
    found.rope = read_rope_config(config, {});
  } catch (const Error& error) {
    fail(command + ": " + error.what());
  }
  if (!found.rope.configs.empty()) found.model_type = found.rope.configs.front().model_type;
  found.train_length = train_length_of(found.rope);
  if (found.rope.dialect == "GGUF") {
    found.files = sizes_of({config});
    return found;
  }
  if (!is_folder_of_model(found.path))
    refuse(command, path, "expected a folder with config.json and weights, or a .gguf file");
  check_architecture(command, found.path, object_of(found.path / "config.json"));
  if (!is_file(found.path / "tokenizer.json"))
    refuse(command, found.path / "tokenizer.json",
           "expected a tokenizer.json, but there is no such file");
  found.files = sizes_of(weight_files(command, found.path));
  return found;
}

void check_can_stretch(const Checkpoint& checkpoint) {
  bool rotates = false;
  for (const RopeConfig& group : checkpoint.rope.configs) {
    if (!group.rotates) continue;
    rotates = true;
    if (group.scaling.type != "default")
      fail(
          fmt::format("extend: rope_scaling: expected none, as the candidates are stretches of "
                      "plain frequencies, but {} has {} ({}); sextant evaluate measures it",
                      checkpoint.name, group.scaling.type, name_of(group.scaling).name));
  }
  if (!rotates)
    fail("extend: positions: expected rotary ones, which alone are stretched, but the layers of " +
         checkpoint.name + " have none; sextant evaluate measures it");
  if (checkpoint.train_length < 1)
    fail("extend: max_position_embeddings: expected the length of training, but " +
         checkpoint.name + " does not say it");
}

}  // namespace sextant::lab
