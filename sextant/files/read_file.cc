#include "sextant/files/read_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "sextant/base/error.h"

namespace sextant {

std::string read_file(const std::filesystem::path& path) {
  const auto cannot = [&](const std::string& what) {
    fail("read " + path.string() + ": cannot " + what + ": " + std::strerror(errno));
  };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) cannot("open it");
  std::string bytes;
  try {
    file.exceptions(std::ios::badbit);  // a directory can be opened but not read
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios::failure&) {
    cannot("read it");
  }
  return bytes;
}

}  // namespace sextant
