#include "sextant/lab/run/arm_process.h"

#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <string>

#include "sextant/base/reason.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/run/interruptions.h"
#include "sextant/lab/run/print.h"

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
  if (file != kNoProgressFile) {
    watch.report = [file](const ProgressReport& report) { send_line(file, line_of(report)); };
  }
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

}  // namespace sextant::lab
