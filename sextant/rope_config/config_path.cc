#include "sextant/rope_config/config_path.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/files/read_file.h"

namespace sextant {
namespace {

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

std::string config_path(const std::string& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  if (!fs::exists(status)) wrong(path, "a file", "none");
  if (fs::is_directory(status)) return in_folder(path).string();
  return path;
}

}  // namespace sextant
