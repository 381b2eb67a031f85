// What holds of a folder of work for as long as it lives: one process at a time, one set of
// settings.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant::lab {

inline constexpr const char* kManifestFile = "manifest.json";

// Only one `what` ("survey") at a time in one directory. The kernel opens the lock when the process
// dies.
class DirectoryLock {
 public:
  DirectoryLock(const std::string& what, const std::filesystem::path& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();

 private:
  int file_ = -1;
};

// Throws Error if the directory has the manifest of another `what`, each difference on a line:
// numbers of other settings or another text cannot go on there. `option` is where the user said the
// directory.
void check_manifest(const std::string& what, const std::string& option,
                    const std::filesystem::path& directory, const nlohmann::json& asked);

}  // namespace sextant::lab
