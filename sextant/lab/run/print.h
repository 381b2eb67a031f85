// Standard output and errors of the commands. All of them pass here, so that no control character
// of a foreign text reaches a terminal (sextant/base/printable.h); scripts/check_layers.py finds
// other ways.
#pragma once

#include <fmt/format.h>

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

}  // namespace sextant::lab
