#include "sextant/files/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <list>
#include <string>
#include <utility>

namespace sextant {
namespace {

[[noreturn]] void cannot(const std::string& what, const std::filesystem::path& path, int error) {
  throw CannotWrite("write " + path.string() + ": cannot " + what + ": " + std::strerror(error));
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
}

std::string make_name_beside(const std::filesystem::path& target) {
  std::error_code error;
  std::filesystem::create_directories(folder_of(target), error);
  if (error) cannot("make its folder", target, error.value());
  return target.string() + ".XXXXXX";
}

// Owns the temporary file until it has its final name.
class Temporary {
 public:
  explicit Temporary(const std::filesystem::path& target)
      : target_(target), name_(make_name_beside(target)), file_(::mkstemp(name_.data())) {
    if (file_ < 0) cannot("make a file beside it", target_, errno);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (file_ >= 0) ::close(file_);
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) cannot("write", target_, errno);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }

  void flush() {
    // mkstemp creates files that only their owner can read; Sextant's files follow the umask.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(file_, 0666 & ~mask) != 0) cannot("set its mode", target_, errno);
    if (::fsync(file_) != 0) cannot("flush", target_, errno);
    if (::close(std::exchange(file_, -1)) != 0) cannot("close", target_, errno);
  }

  void become_target() {
    if (::rename(name_.c_str(), target_.c_str()) != 0) cannot("rename", target_, errno);
    name_.clear();
  }

 private:
  std::filesystem::path target_;
  std::string name_;
  int file_;
};

// Without this, the rename may be lost in a crash of the machine.
void flush_folder(const std::filesystem::path& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY);
  if (file < 0) return;  // a writable but unreadable folder; the rename has succeeded
  ::fsync(file);
  ::close(file);
}

}  // namespace

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  const NewFile file{.path = path, .bytes = bytes};
  write_files({&file, 1});
}

void write_files(std::span<const NewFile> files) {
  std::list<Temporary> written;
  for (const NewFile& file : files) {
    Temporary& temporary = written.emplace_back(file.path);
    temporary.write(file.bytes);
    temporary.flush();
  }
  for (Temporary& temporary : written) temporary.become_target();
  for (const NewFile& file : files) flush_folder(folder_of(file.path));
}

void check_can_write(const std::filesystem::path& folder) {
  std::filesystem::path there = folder;
  std::error_code error;
  while (there.has_relative_path() && !std::filesystem::exists(there, error)) {
    there = folder_of(there);
  }
  const Temporary probe(there / "probe");
}

}  // namespace sextant
