// The origin of this build, for `sextant --version`, reports and manifests. Only build_info.cc is
// compiled again when the commit changes.
#pragma once

#include <string_view>

namespace sextant {

std::string_view commit();    // twelve hexadecimal digits; "unknown" outside a git repository
std::string_view libtorch();  // the version that this was built with, or "none"

}  // namespace sextant
