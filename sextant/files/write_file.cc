// A file is written in three steps: Temporary makes and locks a file beside the target, its bytes
// are flushed to the disk, and rename() puts it in the target's place, which is atomic. Devices and
// pipes have no content to lose and cannot be replaced: write_stream().
#include "sextant/files/write_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <list>
#include <string>
#include <utility>

namespace sextant {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot(const std::string& what, const fs::path& path, int error) {
  throw CannotWrite("write " + path.string() + ": cannot " + what + ": " + std::strerror(error));
}

fs::path folder_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
}

// Waits for the lock of an open file, which only remove_leftovers() can hold, for a moment. File
// systems without locks refuse, also that function.
void lock(int file) {
  while (::flock(file, LOCK_EX) != 0 && errno == EINTR) {
  }
}

void write_all(int file, std::string_view bytes, const fs::path& target) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot("write", target, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

// Owns the temporary file until it has its final name.
class Temporary {
 public:
  explicit Temporary(const fs::path& path) : path_(path), target_(path) {
    std::error_code error;
    const fs::path linked = fs::is_symlink(path, error) ? fs::canonical(path, error) : "";
    if (!linked.empty()) target_ = linked;
    fs::create_directories(folder_of(target_), error);
    if (error) cannot("make its folder", path_, error.value());
    while (!make()) {
    }
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    if (file_ >= 0) ::close(file_);
    if (!name_.empty()) ::unlink(name_.c_str());
    if (lock_ >= 0) ::close(lock_);
  }

  void write(std::string_view bytes) { write_all(file_, bytes, path_); }

  void flush() {
    if (::fchmod(file_, mode()) != 0) cannot("set its mode", path_, errno);
    if (::fsync(file_) != 0) cannot("flush", path_, errno);
    if (::close(std::exchange(file_, -1)) != 0) cannot("close", path_, errno);
  }

  void become_target() {
    if (::rename(name_.c_str(), target_.c_str()) != 0) cannot("rename", path_, errno);
    name_.clear();
  }

  // Without this, the rename may be lost in a crash of the machine.
  void flush_folder() const {
    const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;  // a writable but unreadable folder; the rename has succeeded
    ::fsync(folder);
    ::close(folder);
  }

 private:
  // False if remove_leftovers() took the file for one without an owner.
  bool make() {
    constexpr size_t kMostBytes = 255 - kTemporarySuffix.size();  // of 255 in a file's name
    name_ = folder_of(target_) / target_.filename().string().substr(0, kMostBytes);
    name_ += kTemporarySuffix;
    file_ = ::mkostemp(name_.data(), O_CLOEXEC);
    if (file_ < 0) {
      name_.clear();
      cannot("make a file beside it", path_, errno);
    }
    lock(file_);
    struct stat made {};
    if (::fstat(file_, &made) == 0 && made.st_nlink == 0) {
      ::close(std::exchange(file_, -1));
      return false;
    }
    // A second descriptor keeps the lock when the first one is closed.
    lock_ = ::fcntl(file_, F_DUPFD_CLOEXEC, 0);
    return true;
  }

  // mkostemp makes files that only their owner can read; new files of Sextant follow the umask.
  mode_t mode() const {
    struct stat before {};
    if (::stat(target_.c_str(), &before) == 0) return before.st_mode & 0777;
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return 0666 & ~mask;
  }

  fs::path path_, target_;  // as given, and with links followed
  std::string name_;
  int file_ = -1, lock_ = -1;
};

// Whether the path is a device, a pipe or a socket.
bool is_stream(const fs::path& path) {
  std::error_code ignored;
  return fs::is_other(path, ignored);
}

void write_stream(const fs::path& path, std::string_view bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) cannot("open it", path, errno);
  try {
    write_all(file, bytes, path);
  } catch (const CannotWrite&) {
    ::close(file);
    throw;
  }
  if (::close(file) != 0) cannot("close", path, errno);
}

bool is_temporary(const std::string& name) {
  const std::string_view mark = kTemporarySuffix.substr(0, kTemporarySuffix.find('X'));
  if (name.size() <= kTemporarySuffix.size()) return false;
  const std::string end = name.substr(name.size() - kTemporarySuffix.size());
  return end.starts_with(mark) &&
         std::all_of(end.begin() + static_cast<std::ptrdiff_t>(mark.size()), end.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0; });
}

}  // namespace

void write_file(const fs::path& path, std::string_view bytes) {
  const NewFile file{.path = path, .bytes = bytes};
  write_files({&file, 1});
}

void write_files(std::span<const NewFile> files) {
  std::list<Temporary> written;
  for (const NewFile& file : files) {
    if (is_stream(file.path)) continue;
    Temporary& temporary = written.emplace_back(file.path);
    temporary.write(file.bytes);
    temporary.flush();
  }
  for (const NewFile& file : files)
    if (is_stream(file.path)) write_stream(file.path, file.bytes);
  for (Temporary& temporary : written) temporary.become_target();
  for (const Temporary& temporary : written) temporary.flush_folder();
}

void write_copy(const fs::path& from, const fs::path& to) {
  std::ifstream in(from, std::ios::binary);
  Temporary temporary(to);
  std::string bytes(size_t{1} << 20, '\0');
  while (in) {
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    temporary.write({bytes.data(), static_cast<size_t>(in.gcount())});
  }
  if (!in.eof()) fail("copy " + from.string() + ": expected a file that can be read");
  temporary.flush();
  temporary.become_target();
  temporary.flush_folder();
}

void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!is_temporary(entry->path().filename()) ||
        entry->symlink_status(ignored).type() != fs::file_type::regular) {
      continue;
    }
    const int file = ::open(entry->path().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) continue;
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    ::close(file);
  }
}

void check_can_write(const fs::path& folder) {
  fs::path there = folder;
  std::error_code error;
  while (there.has_relative_path() && !fs::exists(there, error)) there = folder_of(there);
  const Temporary probe(there / "probe");
}

}  // namespace sextant
