#include "sextant/lab/run/print.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace sextant::lab {
namespace {

int first_error = 0;

void put(std::string_view bytes, std::FILE* file) {
  const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (!whole && file == stdout && first_error == 0) first_error = errno;
}

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kRepeat{10};
constexpr double kSecondsBeforeAGuess = 3;
constexpr const char* kClearLine = "\r\033[K";

bool on_terminal() { return ::isatty(STDERR_FILENO) == 1; }

size_t columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

void print_text(std::string_view text) { put(printable_lines(text), stdout); }

void print_bytes(std::string_view bytes) { put(bytes, stdout); }

void note(std::string_view lines) { put(printable_lines(lines) + "\n", stderr); }

void print_error(std::string_view why) { note("sextant: " + printable_message(why)); }

std::string output_error() {
  if (std::fflush(stdout) != 0 && first_error == 0) first_error = errno;
  return first_error == 0 ? "" : std::strerror(first_error);
}

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(std::max(0.0, seconds)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string Progress::left(const Work& work) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double ours = work.done - work.found_done;
  if (seconds < kSecondsBeforeAGuess || ours <= 0) return "";
  return ", " + duration(seconds * (work.total - work.done) / ours) + " left";
}

void Progress::show(const Work& work, const std::string& now) {
  const Clock::time_point time = Clock::now();
  const bool terminal = on_terminal();
  if (time - last_ < (terminal ? Clock::duration(kRedraw) : Clock::duration(kRepeat))) return;
  last_ = time;
  const double share = work.total > 0 ? std::clamp(work.done / work.total, 0.0, 1.0) : 0;
  std::string line = fmt::format("{:3.0f} %{}  {}", std::floor(100 * share), left(work), now);
  if (terminal) {
    line = printable(line).substr(0, columns() - 1);
    // The cut may go through a character.
    std::fputs((kClearLine + printable(line)).c_str(), stderr);
    drawn_ = true;
  } else {
    note(line);
  }
  std::fflush(stderr);
}

void Progress::say(const std::string& line) {
  clear();
  note(line);
  std::fflush(stderr);
}

void Progress::clear() {
  if (drawn_) std::fputs(kClearLine, stderr);
  drawn_ = false;
}

Progress::~Progress() { clear(); }

}  // namespace sextant::lab
