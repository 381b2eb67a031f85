// Full disks and files that cannot be written, for tests of commands.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/command.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::cli {

// Limits the size of files as on a disk that fills up; a write beyond the limit fails without a
// signal.
inline std::function<void()> files_of_at_most(rlim_t bytes) {
  return [bytes] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
}

inline bool can_mount() {
  static const bool can = std::system(
                              "unshare -rm sh -c 'mount -t tmpfs tmpfs /tmp' "
                              ">/dev/null 2>&1") == 0;
  return can;
}

inline std::string word(const std::string& text) {
  return std::string("'").append(text).append("'");
}

// Shells in a mount namespace of their own, where a test mounts small disks below `folder`.
class OwnMounts {
 public:
  // In the scripts, `sextant NAME` runs Sextant with these arguments and keeps its output under the
  // name.
  OwnMounts(std::filesystem::path folder, const std::vector<std::string>& words)
      : folder_(std::move(folder)), command_(SEXTANT_COMMAND) {
    for (const std::string& argument : words) command_.append(" ").append(word(argument));
  }

  void run(const std::string& script) const {
    const std::string file = (folder_ / "script").string();
    write_text(file, "cd " + folder_.string() + "\nmkdir -p out\nsextant() { " + command_ +
                         " >$1.out 2>$1.err; echo $? >$1.status; }\n" + script);
    ASSERT_EQ(std::system(("unshare -rm sh " + file).c_str()), 0);
  }

  Ended ended(const std::string& name) const {
    return {std::stoi(read_text(folder_ / (name + ".status"))),
            read_text(folder_ / (name + ".out")), read_text(folder_ / (name + ".err"))};
  }

 private:
  std::filesystem::path folder_;
  std::string command_;
};

}  // namespace sextant::cli
