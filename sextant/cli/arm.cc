// sextant arm FOLDER: runs one arm of a survey. The command is hidden, because the survey calls it
// with its progress pipe as descriptor 3. Called by hand, `sextant arm runs/survey/arms/rope-0`
// runs one arm again.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "sextant/cli/commands.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/run/plugin.h"

namespace sextant::cli {
namespace {

volatile std::sig_atomic_t stop_asked = 0;

void ask_to_stop(int) { stop_asked = 1; }

// Keeps freed memory in the process. Each training step allocates and frees its tensors, and
// without this setting the kernel maps and unmaps each one, which took 17 % of a training's time.
void keep_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

void send(const std::string& line) {
  // Errors are ignored: the parent process may not read the pipe, and nothing depends on it.
  [[maybe_unused]] const ssize_t written = ::write(lab::kProgressFile, line.data(), line.size());
}

void tell(const lab::Report& report) { send(lab::line_of(report)); }

int work(const std::string& folder, int threads, double save_seconds) {
  std::signal(SIGTERM, ask_to_stop);
  std::signal(SIGPIPE, SIG_IGN);
  keep_memory();
  lab::Watch watch;
  watch.stop = &stop_asked;
  watch.seconds_between_checkpoints = save_seconds;
  const bool heard = ::fcntl(lab::kProgressFile, F_GETFD) != -1;
  if (heard) watch.report = tell;
  try {
    return lab::open_plugin(threads).run_arm(folder, watch) == lab::Ending::kDone
               ? 0
               : lab::kStoppedStatus;
  } catch (const std::exception& error) {
    if (heard) send(lab::line_of_failure(error.what()));
    const bool by_disk = dynamic_cast<const CannotWrite*>(&error) != nullptr;
    std::fprintf(stderr, "sextant: %s\n", error.what());
    return by_disk ? lab::kCannotWriteStatus : 1;
  }
}

}  // namespace

void add_arm(CLI::App& app) {
  CLI::App* command = app.add_subcommand("arm", "Carry out one arm of a survey");
  command->group("");  // hidden in the help
  struct Options {
    std::string folder;
    int threads = 1;
    double save_seconds = lab::Watch().seconds_between_checkpoints;
  };
  auto options = std::make_shared<Options>();
  command->add_option("FOLDER", options->folder, "The arm's folder")->required();
  command->add_option("--threads", options->threads, "Threads of matrix products");
  command->add_option("--save-seconds", options->save_seconds, "Seconds between checkpoints");
  command->callback([options] {
    const int status = work(options->folder, options->threads, options->save_seconds);
    if (status != 0) throw CLI::RuntimeError(status);
  });
}

}  // namespace sextant::cli
