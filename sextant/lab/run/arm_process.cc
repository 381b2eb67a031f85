#include "sextant/lab/run/arm_process.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "sextant/files/write_file.h"

namespace sextant::lab {
namespace {

volatile std::sig_atomic_t stop_asked = 0;

void ask_to_stop(int) { stop_asked = 1; }

// Keeps freed memory in the process. Each training step allocates and frees its tensors, and
// without this setting the kernel maps and unmaps each one, which took 17 % of a training's time.
void keep_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

void send_line(const std::string& line) {
  // Errors are ignored: the parent process may not read the pipe, and nothing depends on it.
  [[maybe_unused]] const ssize_t written = ::write(kProgressFile, line.data(), line.size());
}

}  // namespace

int run_arm_process(double save_seconds, const std::function<Ending(const Watch&)>& run) {
  std::signal(SIGTERM, ask_to_stop);
  std::signal(SIGPIPE, SIG_IGN);
  keep_memory();
  Watch watch;
  watch.stop = &stop_asked;
  watch.seconds_between_checkpoints = save_seconds;
  const bool heard = ::fcntl(kProgressFile, F_GETFD) != -1;
  if (heard) watch.report = [](const Report& report) { send_line(line_of(report)); };
  try {
    return run(watch) == Ending::kDone ? 0 : kStoppedStatus;
  } catch (const std::exception& error) {
    if (heard) send_line(line_of_failure(error.what()));
    const bool by_disk = dynamic_cast<const CannotWrite*>(&error) != nullptr;
    std::fprintf(stderr, "sextant: %s\n", error.what());
    return by_disk ? kCannotWriteStatus : 1;
  }
}

}  // namespace sextant::lab
