// The lock of an arm's folder, the file FOLDER/lock: of several workers, on one machine or on
// several that share the folder, one works on the arm.
//
// The file is created with O_EXCL, which is atomic on local file systems and NFS 3 and later, and
// holds the host and the process of its owner. A killed owner leaves it behind. A worker on the
// same machine then sees that the process is gone and takes the lock over at once; one on another
// machine does when the file has not been touched for kStaleSeconds.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sextant::lab {

inline constexpr const char* kLockFile = "lock";
inline constexpr std::chrono::seconds kTouchSeconds{15}, kStaleSeconds{90};

class ArmLock {
 public:
  // Takes the lock, from a dead owner if need be, and removes the temporary files that killed
  // workers have left in the folder. Returns null if a living worker has it, and describes that
  // worker in `owner`: "process 17 on host n03". Throws CannotWrite.
  static std::unique_ptr<ArmLock> take(const std::filesystem::path& folder, std::string& owner);

  ArmLock(const ArmLock&) = delete;
  ArmLock& operator=(const ArmLock&) = delete;
  ~ArmLock();  // releases it

  const std::filesystem::path& folder() const { return folder_; }
  // Shows that the owner lives. False if another worker has taken the lock over.
  bool touch() const;

 private:
  ArmLock(std::filesystem::path folder, std::string content);
  bool is_ours() const;

  std::filesystem::path folder_;
  std::string content_;
};

// A request to stop, by the file FOLDER/stop. A command that runs arms on other machines makes it,
// since some launchers, such as srun, kill on the signals that a local worker stops on.
inline constexpr const char* kStopFile = "stop";

// A thread that touches locks, and looks for requests to stop every second. on_stop() is called
// once for a request; on_lost(folder) for a lock that another worker has taken over.
class Heartbeat {
 public:
  Heartbeat(const std::vector<std::unique_ptr<ArmLock>>& locks, std::function<void()> on_stop,
            std::function<void(const std::filesystem::path&)> on_lost);

 private:
  std::jthread thread_;
};

}  // namespace sextant::lab
