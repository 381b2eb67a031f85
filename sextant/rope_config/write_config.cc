#include "sextant/rope_config/write_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sextant/error.h"
#include "sextant/files/gguf.h"
#include "sextant/rope_config/flags.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/language_model.h"

namespace sextant {
namespace {

// The groups that rotate, one of each rotation.
std::vector<RopeConfig> rotations(const ReadRopeConfig& read, const std::string& to) {
  std::vector<RopeConfig> groups = distinct_rotations(read.settings);
  if (!groups.empty()) return groups;
  const std::string name = read.settings.empty() ? "" : read.settings[0].model_type;
  fail("convert: " + to + ": model_type: expected a model that rotates queries and keys, but " +
       (name.empty() ? "this one" : name) + " does not");
}

const RopeConfig& only(const std::vector<RopeConfig>& groups, const std::string& to) {
  if (groups.size() == 1) return groups[0];
  fail("convert: " + to + ": expected one setting for all layers, but got " +
       std::to_string(groups.size()));
}

GgufModelSizes sizes_of(const ReadRopeConfig& read) {
  if (read.json.empty()) return {};
  const nlohmann::json config = nlohmann::json::parse(read.json);
  const nlohmann::json& model = *find_language_model(config).config;
  const auto size = [&](const char* name) -> int64_t {
    const auto found = model.find(name);
    if (found == model.end() || !found->is_number_unsigned()) return 0;
    return std::min<int64_t>(found->get<int64_t>(), 65536);
  };
  return {.layers = size("num_hidden_layers"),
          .width = size("hidden_size"),
          .heads = size("num_attention_heads"),
          .dense_layers = size("first_k_dense_replace")};
}

// Its bytes are read again: they say the same of each layer, or an Error is thrown.
std::string write_gguf(const ReadRopeConfig& read, std::vector<std::string>& warnings) {
  const std::string type = rotations(read, "gguf").at(0).model_type;
  const bool named = read.dialect == "GGUF";  // so it is an architecture already
  const std::string architecture = named ? type : gguf_architecture(type);
  const GgufConfig written =
      write_gguf_config(read.settings, architecture, sizes_of(read), warnings);
  std::string bytes = gguf_bytes(written.metadata, written.vectors);
  check_same_layers(read.settings, read_gguf_config(parse_gguf(bytes), {}), architecture);
  return bytes;
}

}  // namespace

std::string write_rope_config(const ReadRopeConfig& read, const std::string& to,
                              std::vector<std::string>& warnings) {
  if (to == "hf5" || to == "hf4") {
    const nlohmann::json config =
        read.json.empty() ? nlohmann::json::object() : nlohmann::json::parse(read.json);
    return write_hugging_face(config, read.settings, to == "hf4" ? 4 : 5).dump(2) + "\n";
  }
  if (to != "gguf" && to != "llama.cpp" && to != "vllm") {
    fail("convert: to: expected hf5, hf4, gguf, llama.cpp or vllm, but got \"" + to + "\"");
  }
  const std::vector<RopeConfig> groups = rotations(read, to);
  if (to == "llama.cpp") return write_llama_cpp(only(groups, to), warnings) + "\n";
  if (to == "vllm") return write_vllm(groups, read.place) + "\n";
  return write_gguf(read, warnings);
}

std::string write_rope_config(const ReadRopeConfig& read, const std::string& to) {
  std::vector<std::string> warnings;
  return write_rope_config(read, to, warnings);
}

}  // namespace sextant
