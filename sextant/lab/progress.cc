#include "sextant/lab/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace sextant::lab {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kRepeat{10};
constexpr double kSecondsBeforeAGuess = 3;

bool on_terminal() { return ::isatty(STDERR_FILENO) == 1; }

size_t columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(std::max(0.0, seconds)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string Progress::left(double done, double total) {
  if (start_done_ < 0) {
    start_done_ = done;
    start_ = Clock::now();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  if (seconds < kSecondsBeforeAGuess || done <= start_done_) return "";
  return ", " + duration(seconds * (total - done) / (done - start_done_)) + " left";
}

void Progress::show(double done, double total, const std::string& now) {
  const Clock::time_point time = Clock::now();
  const bool terminal = on_terminal();
  const std::string rest = left(done, total);
  if (time - last_ < (terminal ? Clock::duration(kRedraw) : Clock::duration(kRepeat))) return;
  last_ = time;
  const double share = total > 0 ? std::clamp(done / total, 0.0, 1.0) : 0;
  std::string line = fmt::format("{:3.0f} %{}  {}", std::floor(100 * share), rest, now);
  if (terminal) {
    line.resize(std::min(line.size(), columns() - 1));
    fmt::print(stderr, "\r\033[K{}", line);
    drawn_ = true;
  } else {
    fmt::print(stderr, "{}\n", line);
  }
  std::fflush(stderr);
}

void Progress::say(const std::string& line) {
  fmt::print(stderr, "{}{}\n", drawn_ ? "\r\033[K" : "", line);
  std::fflush(stderr);
  drawn_ = false;
}

Progress::~Progress() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

}  // namespace sextant::lab
