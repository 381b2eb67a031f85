#include "sextant/base/reason.h"

#include <filesystem>
#include <new>
#include <stdexcept>

#include "sextant/base/error.h"

namespace sextant {

std::string reason_of(const std::exception& error) {
  std::string what = error.what();
  if (dynamic_cast<const Error*>(&error) != nullptr) return what;
  if (const auto* of_files = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    const std::string path = of_files->path1().string();
    return (path.empty() ? "" : path + ": ") + of_files->code().message();
  }
  const bool torch_has_none = what.find("can't allocate memory") != std::string::npos;
  if (torch_has_none || dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr) {
    return "there is not enough memory";
  }
  if (what.starts_with("[json.exception")) return "expected values of other types or sizes";
  if (dynamic_cast<const std::out_of_range*>(&error) != nullptr)
    return "expected other numbers of values";
  // libtorch adds the frames of its stack.
  return what.substr(0, what.find("\nException raised from"));
}

}  // namespace sextant
