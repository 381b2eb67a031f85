#include "sextant/rope_config/read_config.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/base/reason.h"
#include "sextant/files/gguf.h"
#include "sextant/files/read_file.h"
#include "sextant/rope_config/config_path.h"
#include "sextant/rope_config/flags.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/language_model.h"
#include "sextant/rope_config/launch_file.h"
#include "sextant/rope_config/stretch_warnings.h"

namespace sextant {
namespace {

constexpr size_t kMostText = size_t{16} << 20;    // a config.json is a few kilobytes
constexpr size_t kMostHeader = size_t{64} << 20;  // GGUF, including its vocabulary

// 0 stands for an option that is not given.
void check(const std::string& name, double value, double low, double high) {
  if (value == 0 || (value >= low && value <= high)) return;
  fail("config: " + name + ": expected a number from " + nlohmann::json(low).dump() + " to " +
       nlohmann::json(high).dump() + ", but got " +
       (std::isnan(value) ? "nan" : nlohmann::json(value).dump()));
}

// The error of read_rope_config_bytes() without the name of the file that it supposes.
std::string without_supposed_name(const std::exception& error) {
  const std::string what = reason_of(error);
  for (const std::string supposed : {"config.json: ", "config: "}) {
    if (what.starts_with(supposed)) return what.substr(supposed.size());
  }
  if (!what.starts_with("flags: ") || what.starts_with("flags: YAML: ")) return what;
  return what + " (it is neither JSON nor GGUF, so it was taken for flags)";
}

ReadRopeConfig read_dialect(const std::string& marked, const Overrides& overrides,
                            YamlParser yaml) {
  check("--base", overrides.base, 1e-3, 1e30);
  check("--local-base", overrides.local_base, 1e-3, 1e30);
  check("--head-dim", static_cast<double>(overrides.head_dim), 2, static_cast<double>(kWidestHead));
  check("--length", static_cast<double>(overrides.length), 1, 0x1p40);
  const std::string mark = "\xEF\xBB\xBF";  // UTF-8 byte order mark
  const std::string bytes = marked.starts_with(mark) ? marked.substr(mark.size()) : marked;
  if (is_gguf(bytes)) {
    return {"GGUF", "", read_gguf_config(parse_gguf(bytes), overrides)};
  }
  if (bytes.size() > kMostText) {
    fail("config: expected a configuration of at most " + std::to_string(kMostText) +
         " bytes, but got more");
  }
  const size_t start = bytes.find_first_not_of(" \t\r\n");
  if (start == std::string::npos) fail("config: expected a configuration, but got nothing");
  if (bytes[start] == '{') {
    const nlohmann::json config = parse_json(bytes, "config.json");
    std::vector<RopeConfig> configs = read_hugging_face(config, overrides);
    return {"Hugging Face config.json", bytes, configs, find_language_model(config).place};
  }
  if (bytes.size() < 65536 && looks_like_yaml(bytes)) {
    if (yaml == nullptr) {
      fail(
          "config: expected a config.json, a GGUF file or flags, but got YAML, which only the "
          "command sextant reads");
    }
    return {"flags", "", read_flags(launch_words(yaml(bytes, "flags: YAML")), overrides)};
  }
  if (bytes.size() < 65536 && looks_like_flags(bytes)) {
    return {"flags", "", read_flags(bytes, overrides)};
  }
  fail(
      "config: expected a config.json, a GGUF file, or flags of llama.cpp or vLLM (a line or a "
      "compose file of less than 64 KB)");
}

}  // namespace

ReadRopeConfig read_rope_config_bytes(const std::string& marked, const Overrides& overrides,
                                      YamlParser yaml) {
  ReadRopeConfig read = read_dialect(marked, overrides, yaml);
  warn_of_idle_stretch(read.configs);
  for (const RopeConfig& config : read.configs) {
    read.explained.push_back(explain(config, overrides.length));
  }
  return read;
}

ReadRopeConfig read_rope_config(const std::string& path, const Overrides& overrides,
                                YamlParser yaml) {
  if (path == "-")
    return read_rope_config_bytes(read_start_of_standard_input(kMostHeader), overrides, yaml);
  const std::string file = config_path(path);
  const std::string bytes = read_start(file, kMostHeader);
  if (bytes.empty()) fail("config: " + file + ": expected a file with something in it");
  try {
    return read_rope_config_bytes(bytes, overrides, yaml);
  } catch (const std::exception& error) {
    fail(file + ": " + without_supposed_name(error));
  }
}

}  // namespace sextant
