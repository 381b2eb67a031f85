#include "sextant/files/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "sextant/base/error.h"
#include "sextant/base/reason.h"

namespace sextant {
namespace {

constexpr long kPipes = 0x50495045;  // PIPEFS_MAGIC: pipes without a name, as of a shell's <(...)
constexpr size_t kChunkBytes = size_t{1} << 16;

[[noreturn]] void wrong(const std::string& name, const std::string& problem) {
  fail("read " + name + ": " + problem);
}

[[noreturn]] void cannot(const std::string& name, const std::string& what) {
  wrong(name, "cannot " + what + ": " + std::strerror(errno));
}

// A file that is open for reading and known to end, unless it is a pipe.
class Input {
 public:
  explicit Input(const std::filesystem::path& path)
      : name_(path.string()),
        // Without O_NONBLOCK, opening a named pipe waits for a writer.
        file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
    if (file_ < 0) cannot(name_, "open it");
    try {
      check_kind();
    } catch (...) {
      ::close(file_);
      throw;
    }
  }
  ~Input() { ::close(file_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  int file() const { return file_; }
  uint64_t size() const { return size_; }  // 0 for pipes and the files of /proc

 private:
  void check_kind() {
    struct stat facts {};
    struct statfs place {};
    if (::fstat(file_, &facts) != 0 || ::fstatfs(file_, &place) != 0) cannot(name_, "open it");
    if (S_ISREG(facts.st_mode)) {
      size_ = static_cast<uint64_t>(facts.st_size);
    } else if (S_ISFIFO(facts.st_mode) && place.f_type == kPipes) {
      ::fcntl(file_, F_SETFL, O_RDONLY);
    } else {
      wrong(name_,
            std::string("expected a file, but got ") + (S_ISDIR(facts.st_mode)    ? "a folder"
                                                        : S_ISFIFO(facts.st_mode) ? "a named pipe"
                                                                                  : "a device"));
    }
  }

  std::string name_;
  int file_;
  uint64_t size_ = 0;
};

// At most `most` bytes; `size` of them are expected.
std::string first_bytes(const std::string& name, int file, uint64_t size, uint64_t most) {
  std::string bytes;
  try {
    bytes.reserve(std::min(size, most));
    std::array<char, kChunkBytes> chunk;
    while (bytes.size() < most) {
      const ssize_t count =
          ::read(file, chunk.data(), std::min<uint64_t>(chunk.size(), most - bytes.size()));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) cannot(name, "read it");
      if (count == 0) break;
      bytes.append(chunk.data(), static_cast<size_t>(count));
    }
  } catch (const std::bad_alloc&) {
    wrong(name, "there is not enough memory for its " + std::to_string(size) + " bytes");
  }
  return bytes;
}

}  // namespace

uint64_t memory_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

std::string read_file(const std::filesystem::path& path, uint64_t most) {
  const Input input(path);
  const auto refuse = [&](const std::string& got) {
    wrong(path.string(), "expected at most " + std::to_string(most) + " bytes, but got " + got);
  };
  if (input.size() > most) refuse(std::to_string(input.size()));
  std::string bytes = first_bytes(path.string(), input.file(), input.size(), most + 1);
  if (bytes.size() > most) refuse("more");
  return bytes;
}

std::string read_start(const std::filesystem::path& path, uint64_t most) {
  const Input input(path);
  return first_bytes(path.string(), input.file(), input.size(), most);
}

std::string read_start_of_standard_input(uint64_t most) {
  return first_bytes("standard input", STDIN_FILENO, 0, most);
}

void fail_in_file(const std::filesystem::path& path, const std::exception& error) {
  const std::string reason = reason_of(error), name = path.string();
  if (reason.find(name) != std::string::npos) fail(reason);
  const std::string short_name = path.filename().string() + ": ";
  fail(name + ": " + (reason.starts_with(short_name) ? reason.substr(short_name.size()) : reason));
}

}  // namespace sextant
