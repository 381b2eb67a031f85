#include "sextant/lab/plan/manifest.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

DirectoryLock::DirectoryLock(const std::string& what, const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) fail(what + ": cannot make " + directory.string() + ": " + error.message());
  const std::filesystem::path path = directory / ".lock";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0)
    fail(what + ": cannot write in " + directory.string() + ": " + std::strerror(errno));
  if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
    ::close(file_);
    fail(what + ": another one is at work in " + directory.string());
  }
  remove_leftovers(directory);
}

DirectoryLock::~DirectoryLock() { ::close(file_); }

void check_manifest(const std::string& what, const std::string& option,
                    const std::filesystem::path& directory, const nlohmann::json& asked) {
  const std::filesystem::path path = directory / kManifestFile;
  if (!std::filesystem::exists(path)) return;
  const std::vector<std::string> lines = differences(read_json(path), asked);
  if (lines.empty()) return;
  std::string message = what + ": " + directory.string() + " holds a " + what +
                        " with other settings; choose another " + option + ", or remove it:";
  for (const std::string& line : lines) message += "\n  " + line;
  fail(message);
}

}  // namespace sextant::lab
