#include "sextant/lab/run/locked_arms.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/checked_json.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/arm_lock.h"
#include "sextant/lab/run/launch.h"
#include "sextant/lab/run/measure.h"
#include "sextant/lab/run/own_arms.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/print.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

using Locks = std::vector<std::unique_ptr<ArmLock>>;

int run(const std::vector<std::string>& folders, int threads, const ArmProcess& process,
        const Watch& watch) {
  const std::string& first = folders.front();
  if (is_measured_arm(first)) {
    if (threads > 0) {
      fail(
          fmt::format("arm: --threads: expected an arm of a survey, but {} measures a model with "
                      "the threads of its {}",
                      first, kArmFile));
    }
    if (!process.device.empty()) {
      fail(fmt::format("arm: --device: expected an arm of a survey, but {} measures a model",
                       first));
    }
    return run_measured_arms(folders, process, watch);
  }
  if (folders.size() > 1) fail("arm: FOLDER: expected one arm of a survey, but got more");
  if (threads == 0) {
    const fs::path path = fs::path(first) / kArmFile;
    const nlohmann::json file = read_json(path);
    const nlohmann::json& settings = JsonFields(file, path.string()).object("settings");
    const JsonFields fields(settings, path.string() + ": settings");
    threads = static_cast<int>(fields.optional_integer("threads", 1, INT_MAX).value_or(1));
  }
  if (is_own_arm(first)) {
    if (!process.device.empty() && process.device != kCpu) {
      fail(fmt::format("arm: --device: expected cpu for an encoding of one's own, but got {}",
                       process.device));
    }
    return run_own_arm(first, threads, process, watch);
  }
  return status_of(open_plugin(threads).run_arm(first, watch));
}

// The arm belongs to another worker, so that nothing more may be written.
[[noreturn]] void give_up(const ArmProcess& process, const fs::path& folder) {
  const std::string why = fmt::format(
      "{}: expected its lock, but another worker has taken it over, as this one had "
      "not touched it for {} s",
      folder.string(), kStaleSeconds.count());
  send_line(process.progress_file, line_of_failure(why));
  print_error(why);
  ::_exit(1);
}

}  // namespace

int run_locked_arms(const std::vector<std::string>& folders, int threads,
                    const ArmProcess& process) {
  return run_arm_process(process, [&](const Watch& watch) {
    Locks locks;
    std::vector<std::string> ours;
    std::string busy;
    for (const std::string& folder : folders) {
      const char* done_file = is_measured_arm(folder) ? kMeasuredFile : kResultFile;
      if (fs::exists(fs::path(folder) / done_file)) continue;
      std::string owner;
      std::unique_ptr<ArmLock> lock = ArmLock::take(folder, owner);
      if (lock == nullptr) {
        busy = fmt::format("{} works on it", owner);
        note(printable(fmt::format("{}: {}", folder, busy)));
        continue;
      }
      if (fs::exists(fs::path(folder) / done_file)) continue;  // in the meantime
      locks.push_back(std::move(lock));
      ours.push_back(folder);
    }
    int status = 0;
    if (!ours.empty()) {
      const Heartbeat heartbeat(
          locks, [] { ask_to_stop(); }, [&](const fs::path& folder) { give_up(process, folder); });
      status = run(ours, threads, process, watch);
    }
    if (status != 0 || busy.empty()) return status;
    send_line(process.progress_file, line_of_failure(busy));
    return kBusyStatus;
  });
}

}  // namespace sextant::lab
