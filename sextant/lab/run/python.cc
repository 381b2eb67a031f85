#include "sextant/lab/run/python.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;

// The folder of the package beside this program; empty: it must be installed.
std::string package_beside(const std::string& package_file) {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  for (const char* place : {"../..", "../../../python"}) {
    const fs::path root = (program / place).lexically_normal();
    if (fs::exists(root / "sextant" / package_file)) return root.string();
  }
  return "";
}

}  // namespace

std::string python_name() {
  const char* named = std::getenv("SEXTANT_PYTHON");
  return named ? named : "python3";
}

void become_python(const std::string& module, const std::string& package_file,
                   const std::vector<std::string>& arguments, const std::string& must_have) {
  std::vector<std::string> command{python_name(), "-m", module};
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (const std::string package = package_beside(package_file); !package.empty()) {
    const char* before = std::getenv("PYTHONPATH");
    ::setenv("PYTHONPATH", (package + (before ? ":" + std::string(before) : "")).c_str(), 1);
  }
  ::setenv("SEXTANT_COMMAND", fs::read_symlink("/proc/self/exe").c_str(), 0);
  std::vector<char*> pointers;
  pointers.reserve(command.size() + 1);
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(pointers[0], pointers.data());
  fail("cannot run " + command[0] + ": " + std::strerror(errno) +
       "; SEXTANT_PYTHON names a Python with " + must_have);
}

}  // namespace sextant::lab
