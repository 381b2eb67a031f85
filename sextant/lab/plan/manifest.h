// Invariants of a work folder over its lifetime: one process at a time, one set of settings.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant::lab {

inline constexpr const char* kManifestFile = "manifest.json";

// Locks a directory so that only one `what` ("survey") works in it at a time, and removes the
// temporary files that killed ones have left in it. The kernel releases the lock when the process
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

// Throws Error if the directory has the manifest of a `what` with other settings, with one line per
// difference: results of other settings or of another text cannot be continued there. `option`
// names the command-line option of the directory.
void check_manifest(const std::string& what, const std::string& option,
                    const std::filesystem::path& directory, const nlohmann::json& asked);

}  // namespace sextant::lab
