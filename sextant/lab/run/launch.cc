#include "sextant/lab/run/launch.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <system_error>

#include "sextant/base/error.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/run/arm_lock.h"
#include "sextant/lab/run/shell_word.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgress = "progress";

// Ignores errors: the arm goes on without progress reports, or is stopped by a signal later.
void write_message(const fs::path& path, const std::string& text) {
  try {
    write_file(path, text);
  } catch (const CannotWrite&) {
  }
}

}  // namespace

std::vector<std::string> launcher_words(const std::string& option, const std::string& prefix) {
  if (prefix.find_first_of("'\"\\") != std::string::npos) {
    fail(fmt::format("{}: expected words without quotes, separated by spaces, but got {}", option,
                     prefix));
  }
  std::istringstream text(prefix);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  if (words.empty() && !prefix.empty()) {
    fail(fmt::format("{}: expected a command, but got only spaces", option));
  }
  return words;
}

std::vector<std::string> launched(const std::vector<std::string>& launcher,
                                  std::vector<std::string> command, const fs::path& folder) {
  if (command.front() == "/proc/self/exe") command.front() = fs::read_symlink(command.front());
  command.push_back(fs::absolute(folder).lexically_normal().string());
  const bool by_shell = fs::path(launcher.front()).filename() == "ssh";
  std::vector<std::string> words = launcher;
  for (const std::string& word : command) words.push_back(by_shell ? shell_word(word) : word);
  return words;
}

ProgressReport read_progress(const fs::path& folder) {
  try {
    const std::string text = read_file(folder / kProgress, kMostNoteBytes);
    return report_of(text.substr(0, text.find('\n'))).value_or(ProgressReport{});
  } catch (const Error&) {
    return {};
  }
}

void write_progress(const fs::path& folder, const ProgressReport& report) {
  write_message(folder / kProgress, line_of(report));
}

void ask_to_stop(const fs::path& folder) { write_message(folder / kStopFile, "stop\n"); }

void forget_messages(const fs::path& folder) {
  std::error_code ignored;
  fs::remove(folder / kStopFile, ignored);
  fs::remove(folder / kProgress, ignored);
}

}  // namespace sextant::lab
