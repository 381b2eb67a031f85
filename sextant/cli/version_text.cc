#include <fmt/format.h>

#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/simd/target.h"
#include "sextant/build_info.h"
#include "sextant/cli/commands.h"
#include "sextant/version.h"

namespace sextant::cli {

std::string version_text() {
  std::vector<std::string> names;
  for (const Backend* backend : backends())
    names.push_back(std::string(backend->name) + (why_not(*backend).empty() ? "" : " (not here)"));
  return fmt::format(
      "sextant {} (commit {})\n"
      "backends: {}\n"
      "SIMD: {}\n"
      "libtorch: {}",
      version(), commit(), fmt::join(names, ", "), simd_target(), libtorch());
}

}  // namespace sextant::cli
