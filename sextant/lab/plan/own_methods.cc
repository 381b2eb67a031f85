#include "sextant/lab/plan/own_methods.h"

#include <fmt/format.h>

#include <filesystem>

#include "sextant/base/error.h"
#include "sextant/files/checked_bytes.h"
#include "sextant/files/read_file.h"

namespace sextant::lab {
namespace {

constexpr std::string_view kPythonFile = ".py:";

}  // namespace

bool is_own_method(std::string_view text) {
  const size_t file = text.find(kPythonFile), equals = text.find('=');
  if (file == text.npos) return false;
  return equals > file || text.find(':') > equals;  // else it is the value of an option
}

size_t end_of_own_method(std::string_view text) {
  return text.find(':', text.find(kPythonFile) + kPythonFile.size());
}

std::string source_of_own_method(const std::string& method) {
  const std::string file = method.substr(0, method.find(kPythonFile) + kPythonFile.size() - 1);
  if (!std::filesystem::is_regular_file(file))
    fail(fmt::format("methods: {}: expected FILE.py:CLASS, but there is no file {}", method, file));
  return fmt::format("{:08x}", crc32(0, read_file(file, kMostJsonBytes)));
}

}  // namespace sextant::lab
