// Standard output and errors of the commands. All of them pass here, so that no control character
// of a foreign text reaches a terminal (sextant/base/printable.h); tests/check_layers.py finds
// other ways.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>
#include <type_traits>

#include "sextant/base/printable.h"

namespace sextant::lab {

// Prints lines whose line feeds are Sextant's own: tables, JSON. output_error() has the first
// error.
void print_text(std::string_view text);

// Bytes of a file, which are no text.
void print_bytes(std::string_view bytes);

template <class T>
auto printable_argument(const T& argument) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return printable(argument);
  } else {
    return argument;
  }
}

// Prints by a format. Strings among the arguments can be foreign: none begins a line.
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... arguments) {
  const fmt::string_view text = format;
  print_text(fmt::format(fmt::runtime(text), printable_argument(arguments)...));
}

// Prints a line, or several, on standard error. Errors are ignored.
void note(std::string_view lines);
// "sextant: WHY", likewise.
void print_error(std::string_view why);

// Flushes standard output. Why it cannot be written; empty if all was.
std::string output_error();

// The progress of a survey on standard error: one redrawn line on a terminal, else a line every ten
// seconds. Results go to standard output.
class Progress {
 public:
  // Prints a permanent line, such as "rope-0 done", above the redrawn line.
  void say(const std::string& line);

  // Units of work.
  struct Work {
    double done = 0, total = 0;
    double found_done = 0;  // part of `done` from an earlier run, excluded from the speed
  };

  // `now` describes the running arms. Redraws at most every 0.1 s on a terminal, else every 10 s.
  void show(const Work& work, const std::string& now);

  // Erases the redrawn line.
  ~Progress();

 private:
  using Clock = std::chrono::steady_clock;
  std::string left(const Work& work) const;
  void clear();

  bool drawn_ = false;
  Clock::time_point last_ = {};
  Clock::time_point start_ = Clock::now();
};

// "4 min 10 s"
std::string duration(double seconds);

}  // namespace sextant::lab
