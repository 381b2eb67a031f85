#include "sextant/rope_config/write_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/gguf.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/flags.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/language_model.h"

namespace sextant {
namespace {

// The rotating groups, one per distinct rotation.
std::vector<RopeConfig> rotations(const ReadRopeConfig& read, const std::string& to) {
  std::vector<RopeConfig> groups = distinct_rotations(read.configs);
  if (!groups.empty()) return groups;
  const std::string name = read.configs.empty() ? "" : read.configs[0].model_type;
  fail("convert: " + to + ": model_type: expected a model that rotates queries and keys, but " +
       (name.empty() ? "this one" : name) + " does not");
}

const RopeConfig& only(const std::vector<RopeConfig>& groups, const std::string& to) {
  if (groups.size() == 1) return groups[0];
  fail("convert: " + to + ": expected one configuration for all layers, but got " +
       std::to_string(groups.size()));
}

// The weights in a GGUF file are in the order of pairs that llama.cpp rotates.
void warn_of_pairs(const ReadRopeConfig& read, std::vector<std::string>& warnings) {
  if (read.dialect != "GGUF" || read.configs.empty()) return;
  const RopeConfig& config = read.configs[0];
  const LlamaCppArchitecture* row = find_architecture(config.model_type);
  const auto there = row ? pairing_in_transformers(*row) : std::nullopt;
  if (!there || !config.pairing || *there == *config.pairing) return;
  warnings.push_back("llama.cpp rotates " + order_of(*config.pairing) +
                     " pairs in the architecture " + row->name + ", and transformers " +
                     order_of(*there) +
                     " ones in its models: the weights of queries and keys of the GGUF file must "
                     "be permuted to that order. " +
                     engine_fact("transformers.pairs"));
}

GgufModelSizes sizes_of(const ReadRopeConfig& read) {
  if (read.json.empty()) return {};
  const nlohmann::json config = parse_json(read.json, "config.json");
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

void take_betas_of_code(RopeConfig& config, const std::string& architecture) {
  const LlamaCppArchitecture* row = find_architecture(architecture);
  auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  auto* yarn = fixed ? std::get_if<Yarn>(fixed) : nullptr;
  if (!row || row->yarn_keys.betas || !yarn) return;
  yarn->beta_fast = row->yarn_keys.beta_fast;
  yarn->beta_slow = row->yarn_keys.beta_slow;
}

// Reads the written bytes again; throws Error unless they describe the same layers.
std::string write_gguf(const ReadRopeConfig& read, std::vector<std::string>& warnings) {
  const std::string type = rotations(read, "gguf").at(0).model_type;
  const bool named = read.dialect == "GGUF";  // model_type is already an architecture
  const bool both_sides = std::ranges::any_of(read.configs, &RopeConfig::both_sides);
  const std::string architecture = named ? type : gguf_architecture(type, both_sides);
  const GgufConfig written =
      write_gguf_config(read.configs, architecture, sizes_of(read), warnings);
  std::string bytes = gguf_bytes(written.metadata, written.vectors);
  // If the code ignores the betas, a warning gives the flags for them.
  std::vector<RopeConfig> configs = read.configs;
  for (RopeConfig& config : configs) take_betas_of_code(config, architecture);
  check_same_layers(configs, read_gguf_config(parse_gguf(bytes), {}), architecture);
  return bytes;
}

}  // namespace

std::string write_rope_config(const ReadRopeConfig& read, const std::string& to,
                              std::vector<std::string>& warnings) {
  if (to == "hf5" || to == "hf4") {
    const nlohmann::json config =
        read.json.empty() ? nlohmann::json::object() : parse_json(read.json, "config.json");
    warn_of_pairs(read, warnings);
    const int version = to == "hf4" ? 4 : 5;
    return json_as_python_writes_it(write_hugging_face(config, read.configs, version)) + "\n";
  }
  if (to != "gguf" && to != "llama.cpp" && to != "vllm") {
    fail("convert: to: expected hf5, hf4, gguf, llama.cpp or vllm, but got \"" + to + "\"");
  }
  const std::vector<RopeConfig> groups = rotations(read, to);
  if (to == "llama.cpp") return write_llama_cpp(only(groups, to), warnings) + "\n";
  if (to == "vllm") return write_vllm(groups, read.place, warnings) + "\n";
  return write_gguf(read, warnings);
}

std::string write_rope_config(const ReadRopeConfig& read, const std::string& to) {
  std::vector<std::string> warnings;
  return write_rope_config(read, to, warnings);
}

}  // namespace sextant
