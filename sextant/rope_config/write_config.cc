#include "sextant/rope_config/write_config.h"

#include <nlohmann/json.hpp>

#include "sextant/error.h"
#include "sextant/rope_config/flags.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/hugging_face.h"

namespace sextant {
namespace {

const RopeConfig& only(const ReadRopeConfig& read, const std::string& to) {
  if (read.settings.size() != 1) {
    fail("convert: " + to + ": expected one setting for all layers, but got " +
         std::to_string(read.settings.size()));
  }
  return read.settings[0];
}

}  // namespace

std::string write_rope_config(const ReadRopeConfig& read, const std::string& to) {
  if (to == "hf5" || to == "hf4") {
    const nlohmann::json config =
        read.json.empty() ? nlohmann::json::object() : nlohmann::json::parse(read.json);
    return write_hugging_face(config, read.settings, to == "hf4" ? 4 : 5).dump(2) + "\n";
  }
  if (to == "gguf") {
    const RopeConfig& one = only(read, to);
    const bool named = read.dialect == "GGUF";  // so it is an architecture already
    const GgufConfig setting =
        write_gguf_config(one, named ? one.model_type : gguf_architecture(one.model_type));
    return gguf_bytes(setting.metadata, setting.vectors);
  }
  if (to == "llama.cpp") return write_llama_cpp(only(read, to)) + "\n";
  if (to == "vllm") return write_vllm(only(read, to)) + "\n";
  fail("convert: to: expected hf5, hf4, gguf, llama.cpp or vllm, but got \"" + to + "\"");
}

}  // namespace sextant
