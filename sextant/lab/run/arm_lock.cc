// The lock names host, boot, process and its start, so that a process on the same machine can tell
// a dead owner; on others the age of the file tells.
#include "sextant/lab/run/arm_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "sextant/files/json_fields.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kAttempts = 5;
constexpr int kFieldsToStart = 19;  // of /proc/PID/stat from the state, the first after the name

// Empty if there is no such file.
std::string content_of(const fs::path& path) {
  try {
    return read_file(path, kMostNoteBytes);
  } catch (const Error&) {
    return "";
  }
}

// The time at which a process started, in ticks since the boot; empty if it is gone or killed.
std::string start_of(int64_t process) {
  const std::string stat = content_of(fmt::format("/proc/{}/stat", process));
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  fields >> field;
  if (field == "Z" || field == "X") return "";
  for (int n = 0; n < kFieldsToStart; ++n) fields >> field;
  return field;
}

// The boot of the machine and the space of process numbers: containers of one machine have numbers
// of their own.
std::string machine() {
  std::error_code ignored;
  std::string boot = content_of("/proc/sys/kernel/random/boot_id");
  while (boot.ends_with('\n')) boot.pop_back();
  return boot + " " + fs::read_symlink("/proc/self/ns/pid", ignored).string();
}

std::string host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string own_content() {
  const int64_t process = ::getpid();
  return json{{"host", host()},
              {"process", process},
              {"started", start_of(process)},
              {"machine", machine()}}
      .dump();
}

// Seconds since the file was touched, by the clock of its file system; nullopt if it is gone.
std::optional<double> age(const fs::path& path) {
  struct stat touched {
  }, now{};
  if (::stat(path.c_str(), &touched) != 0) return std::nullopt;
  std::string probe = path.string().append(kTemporarySuffix);
  const int file = ::mkstemp(probe.data());
  if (file < 0) throw CannotWrite("lock " + path.string() + ": " + std::strerror(errno));
  ::fstat(file, &now);
  ::close(file);
  ::unlink(probe.c_str());
  const auto seconds = [](const timespec& time) {
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  return seconds(now.st_mtim) - seconds(touched.st_mtim);
}

struct Owner {
  std::string host, started, machine;
  int64_t process = 0;
};

// The owner described by a lock's content; nullopt if it describes none.
std::optional<Owner> owner_of(const std::string& content) {
  try {
    const json object = checked_json(content, "lock");
    const JsonFields fields(object, "lock");
    Owner owner;
    fields.read("host", owner.host);
    fields.read("process", owner.process);
    fields.read("started", owner.started);
    fields.read("machine", owner.machine);
    return owner;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Whether the owner described by `content` lives as far as this machine can tell.
bool is_alive(const fs::path& path, const std::string& content) {
  const std::optional<Owner> owner = owner_of(content);
  if (owner && owner->machine == machine()) {
    const std::string start = start_of(owner->process);
    return !start.empty() && start == owner->started;
  }
  const std::optional<double> seconds = age(path);
  return seconds && *seconds < static_cast<double>(kStaleSeconds.count());
}

std::string description(const std::string& content) {
  const std::optional<Owner> owner = owner_of(content);
  if (!owner) return "another process";
  return fmt::format("process {} on host {}", owner->process, owner->host);
}

// False if the file exists.
bool create(const fs::path& path, const std::string& content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0 && errno == EEXIST) return false;
  if (file < 0) throw CannotWrite("lock " + path.string() + ": " + std::strerror(errno));
  const ssize_t written = ::write(file, content.data(), content.size());
  const int error = errno;
  ::close(file);
  if (written == static_cast<ssize_t>(content.size())) return true;
  ::unlink(path.c_str());
  throw CannotWrite("lock " + path.string() + ": " + std::strerror(error));
}

// Moves the lock of a dead owner away. Another worker may have done so since it was read, and
// locked the arm: its lock is put back.
void remove_dead(const fs::path& path, const std::string& content) {
  const fs::path aside = fmt::format("{}.{}.{}", path.string(), host(), ::getpid());
  if (::rename(path.c_str(), aside.c_str()) != 0) return;
  if (content_of(aside) != content) (void)::link(aside.c_str(), path.c_str());
  ::unlink(aside.c_str());
}

}  // namespace

std::unique_ptr<ArmLock> ArmLock::take(const fs::path& folder, std::string& owner) {
  const fs::path path = folder / kLockFile;
  const std::string ours = own_content();
  for (int n = 0; n < kAttempts; ++n) {
    if (create(path, ours)) {
      remove_leftovers(folder);
      return std::unique_ptr<ArmLock>(new ArmLock(folder, ours));
    }
    const std::string theirs = content_of(path);
    owner = description(theirs);
    if (is_alive(path, theirs)) return nullptr;
    remove_dead(path, theirs);
  }
  return nullptr;
}

ArmLock::ArmLock(fs::path folder, std::string content)
    : folder_(std::move(folder)), content_(std::move(content)) {}

ArmLock::~ArmLock() {
  if (is_ours()) ::unlink((folder_ / kLockFile).c_str());
}

bool ArmLock::is_ours() const { return content_of(folder_ / kLockFile) == content_; }

bool ArmLock::touch() const {
  if (!is_ours()) return false;
  // A failure here is not a loss of the lock.
  ::utimensat(AT_FDCWD, (folder_ / kLockFile).c_str(), nullptr, 0);
  return true;
}

Heartbeat::Heartbeat(const std::vector<std::unique_ptr<ArmLock>>& locks,
                     std::function<void()> on_stop, std::function<void(const fs::path&)> on_lost)
    : thread_([&locks, on_stop = std::move(on_stop),
               on_lost = std::move(on_lost)](const std::stop_token& end) {
        std::mutex mutex;
        std::unique_lock guard(mutex);
        std::condition_variable_any never;
        bool stopped = false;
        auto touched = std::chrono::steady_clock::now();
        while (!never.wait_for(guard, end, std::chrono::seconds(1), [] { return false; }) &&
               !end.stop_requested()) {
          const bool due = std::chrono::steady_clock::now() - touched >= kTouchSeconds;
          if (due) touched = std::chrono::steady_clock::now();
          for (const std::unique_ptr<ArmLock>& lock : locks) {
            if (due && !lock->touch()) on_lost(lock->folder());
            if (stopped || ::access((lock->folder() / kStopFile).c_str(), F_OK) != 0) continue;
            stopped = true;
            on_stop();
          }
        }
      }) {}

}  // namespace sextant::lab
