// The first bytes tell GGUF from JSON, and the shape of the text flags from files. A folder stands
// for the file in it that describes the model.
#include "sextant/rope_config/read_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "sextant/base/error.h"
#include "sextant/base/reason.h"
#include "sextant/files/gguf.h"
#include "sextant/files/read_file.h"
#include "sextant/rope_config/config_path.h"
#include "sextant/rope_config/doubts.h"
#include "sextant/rope_config/flags.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/rope_config/language_model.h"
#include "sextant/rope_config/launch_file.h"

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
  std::string what = reason_of(error);
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
    std::vector<VisionPart> vision = read_vision(config, configs);
    return {"Hugging Face config.json",        bytes, std::move(configs),
            find_language_model(config).place, {},    std::move(vision)};
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

namespace fs = std::filesystem;

[[noreturn]] void wrong(const fs::path& path, const std::string& expected, const std::string& got) {
  fail("config: " + path.string() + ": expected " + expected + ", but got " + got);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    found.push_back(at->path());
  }
  if (error) wrong(folder, "a folder that can be listed", error.message());
  std::ranges::sort(found);
  return found;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// A folder of Hugging Face's cache: refs/main names the snapshot in use.
fs::path in_snapshots(const fs::path& folder) {
  const fs::path reference = folder / "refs" / "main";
  std::istringstream words(is_file(reference) ? read_file(reference, kMostNoteBytes) : "");
  std::string revision;
  words >> revision;
  const bool plain = !revision.empty() && std::ranges::all_of(revision, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
  });
  if (plain && is_file(folder / "snapshots" / revision / "config.json")) {
    return folder / "snapshots" / revision / "config.json";
  }
  std::vector<fs::path> found;
  for (const fs::path& snapshot : entries(folder / "snapshots")) {
    if (is_file(snapshot / "config.json")) found.push_back(snapshot / "config.json");
  }
  if (found.size() != 1) {
    wrong(folder, "one snapshot with a config.json",
          std::to_string(found.size()) + "; give the folder of one, snapshots/REVISION");
  }
  return found[0];
}

// Whether a file is a later part of a split model, in which the first is NAME-00001-of-00003.gguf.
bool is_later_part(const std::string& name) {
  const size_t of = name.rfind("-of-");
  return of != std::string::npos && of >= 6 && name[of - 6] == '-' &&
         name.substr(of - 5, 5) != "00001";
}

fs::path in_folder(const fs::path& folder) {
  if (is_file(folder / "config.json")) return folder / "config.json";
  std::error_code ignored;
  if (fs::is_directory(folder / "snapshots", ignored)) return in_snapshots(folder);
  std::vector<fs::path> models;
  for (const fs::path& file : entries(folder)) {
    const std::string name = file.filename().string();
    if (file.extension() == ".gguf" && is_file(file) && !is_later_part(name)) {
      models.push_back(file);
    }
  }
  const std::string expected = "a folder with a config.json or one .gguf file";
  // A model's encoder of images lies beside it.
  const auto is_projector = [](const fs::path& file) {
    return file.filename().string().find("mmproj") != std::string::npos;
  };
  if (!std::ranges::all_of(models, is_projector)) std::erase_if(models, is_projector);
  if (models.empty()) wrong(folder, expected, "neither");
  if (models.size() > 1) {
    wrong(folder, expected,
          std::to_string(models.size()) + " .gguf files, " + models[0].filename().string() +
              " and " + models[1].filename().string() + " among them; give one of them");
  }
  return models[0];
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

std::string config_path(const std::string& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  if (!fs::exists(status)) wrong(path, "a file", "none");
  if (fs::is_directory(status)) return in_folder(path).string();
  return path;
}

}  // namespace sextant
