#include "sextant/rope_config/write_config.h"

#include <nlohmann/json.hpp>

#include "sextant/error.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/flags.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/hugging_face.h"

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

// A GGUF file's weights stand in the order of pairs that llama.cpp rotates.
void warn_of_pairs(const ReadRopeConfig& read, std::vector<std::string>& warnings) {
  if (read.dialect != "GGUF" || read.settings.empty()) return;
  const RopeConfig& setting = read.settings[0];
  const LlamaCppArchitecture* row = find_architecture(setting.model_type);
  const auto there = row ? pairing_in_transformers(*row) : std::nullopt;
  if (!there || !setting.pairing || *there == *setting.pairing) return;
  warnings.push_back("llama.cpp rotates " + order_of(*setting.pairing) +
                     " pairs in the architecture " + row->name + ", and transformers " +
                     order_of(*there) +
                     " ones in its models: the weights of queries and keys of the GGUF file must "
                     "be permuted to that order. " +
                     engine_fact("transformers.pairs"));
}

}  // namespace

std::string write_rope_config(const ReadRopeConfig& read, const std::string& to,
                              std::vector<std::string>& warnings) {
  if (to == "hf5" || to == "hf4") {
    const nlohmann::json config =
        read.json.empty() ? nlohmann::json::object() : parse_json(read.json, "config.json");
    warn_of_pairs(read, warnings);
    const int version = to == "hf4" ? 4 : 5;
    return json_as_python_writes_it(write_hugging_face(config, read.settings, version)) + "\n";
  }
  if (to != "gguf" && to != "llama.cpp" && to != "vllm") {
    fail("convert: to: expected hf5, hf4, gguf, llama.cpp or vllm, but got \"" + to + "\"");
  }
  const std::vector<RopeConfig> groups = rotations(read, to);
  if (to == "llama.cpp") return write_llama_cpp(only(groups, to), warnings) + "\n";
  if (to == "vllm") return write_vllm(groups, read.place, warnings) + "\n";
  const std::string& type = groups[0].model_type;
  const bool named = read.dialect == "GGUF";  // so it is an architecture already
  const GgufConfig setting =
      write_gguf_config(groups, named ? type : gguf_architecture(type), warnings);
  return gguf_bytes(setting.metadata, setting.vectors);
}

std::string write_rope_config(const ReadRopeConfig& read, const std::string& to) {
  std::vector<std::string> warnings;
  return write_rope_config(read, to, warnings);
}

}  // namespace sextant
