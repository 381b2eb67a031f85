// Signals set flags that the watch of the arm reads between steps; progress goes to the parent as
// lines of JSON, and the exit status says how the arm ended.
#include "sextant/lab/run/arm_process.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "sextant/base/error.h"
#include "sextant/base/reason.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/plan/own_methods.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/arm_lock.h"
#include "sextant/lab/run/hand_out.h"
#include "sextant/lab/run/interruptions.h"
#include "sextant/lab/run/measure.h"
#include "sextant/lab/run/print.h"
#include "sextant/lab/run/python.h"
#include "sextant/lab/run/worker.h"

namespace sextant::lab {
namespace {

volatile std::sig_atomic_t stop_asked = 0;

void note_signal(int signal) {
  stop_asked = 1;
  note_interruption(signal);
}

// The second Ctrl-C kills.
void note_interrupt(int signal) {
  note_signal(signal);
  std::signal(signal, SIG_DFL);
}

// Keeps freed memory in the process. Each training step allocates and frees its tensors, and
// without this setting the kernel maps and unmaps each one, which took 17 % of a training's time.
void keep_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

namespace fs = std::filesystem;

using Locks = std::vector<std::unique_ptr<ArmLock>>;

int run(const std::vector<std::string>& folders, int threads, const ArmProcess& process,
        const Watch& watch) {
  const std::string& first = folders.front();
  if (is_measured_arm(first)) {
    if (threads > 0)
      fail(
          fmt::format("arm: --threads: expected an arm of a survey, but {} measures a model with "
                      "the threads of its {}",
                      first, kArmFile));
    if (!process.device.empty())
      fail(fmt::format("arm: --device: expected an arm of a survey, but {} measures a model",
                       first));
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
    if (!process.device.empty() && process.device != kCpu)
      fail(fmt::format("arm: --device: expected cpu for an encoding of one's own, but got {}",
                       process.device));
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

constexpr const char* kModule = "sextant.own_arm";
constexpr const char* kMustHave = "the torch of this program";

std::vector<std::string> words(std::vector<std::string> last, int progress_file) {
  last.insert(last.begin(),
              {"--plugin", plugin_path().string(), "--progress-fd", std::to_string(progress_file)});
  return last;
}

}  // namespace

int status_of(Ending ending) {
  if (ending == Ending::kDone) return 0;
  return ending == Ending::kBusy ? kBusyStatus : kStoppedStatus;
}

void ask_to_stop() { stop_asked = 1; }

void send_line(int progress_file, const std::string& line) {
  if (progress_file == kNoProgressFile) return;
  [[maybe_unused]] const ssize_t written = ::write(progress_file, line.data(), line.size());
}

int run_arm_process(const ArmProcess& process, const std::function<int(const Watch&)>& run) {
  std::signal(SIGTERM, note_signal);
  if (!process.has_parent) {
    std::signal(SIGINT, note_interrupt);
    if (std::signal(SIGHUP, note_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  }
  std::signal(SIGPIPE, SIG_IGN);
  keep_memory();
  Watch watch;
  watch.stop = &stop_asked;
  watch.seconds_between_checkpoints = process.save_seconds;
  watch.grouped = process.grouped;
  watch.device = process.device;
  const int file = process.progress_file;
  if (file != kNoProgressFile)
    watch.report = [file](const ProgressReport& report) { send_line(file, line_of(report)); };
  try {
    return run(watch);
  } catch (const std::exception& error) {
    const std::string reason = reason_of(error);
    send_line(file, line_of_failure(reason));
    const bool by_disk = dynamic_cast<const CannotWrite*>(&error) != nullptr;
    print_error(reason);
    return by_disk ? kCannotWriteStatus : 1;
  }
}

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

bool is_own_arm(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kArmFile;
  return naming_file(path, [&] {
    const nlohmann::json file = read_json(path);
    return file.contains("arm") && is_own_method(file.at("arm").get<Arm>().method);
  });
}

int run_own_arm(const std::string& folder, int threads, const ArmProcess& process,
                const Watch& watch) {
  set_threads(threads);
  return run_python(kModule,
                    words({"--save-seconds", std::to_string(process.save_seconds), folder},
                          process.progress_file),
                    kMustHave, [&] { return *watch.stop != 0; });
}

void become_own_check(const std::string& assignment, int threads, int progress_file) {
  set_threads(threads);
  become_python(kModule, words({"--check", assignment}, progress_file), kMustHave);
}

void check_own_arms(const Settings& settings, std::span<const Arm> arms) {
  std::set<std::string> checked;
  for (const Arm& arm : arms) {
    if (!is_own_method(arm.method)) continue;
    Arm first = arm;  // seeds and tasks differ in their sizes at most
    first.seed = 0;
    const nlohmann::json assignment{{"arm", first}, {"settings", settings}};
    if (!checked.insert(arm.method + arm.options + name(arm.task)).second) continue;
    Worker worker({"/proc/self/exe", "arm", "--progress-fd", std::to_string(kProgressFile),
                   "--check", assignment.dump()},
                  "/dev/null");
    while (worker.read()) {
    }
    std::string why;
    if (worker.finish(why) == Ending::kDone) continue;
    fail(fmt::format("methods: {}: {}", arm.label, worker.said().empty() ? why : worker.said()));
  }
}

}  // namespace sextant::lab
