#include "sextant/lab/run/print.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace sextant::lab {
namespace {

int first_error = 0;

void put(std::string_view bytes, std::FILE* file) {
  const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (!whole && file == stdout && first_error == 0) first_error = errno;
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

}  // namespace sextant::lab
