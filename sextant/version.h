// The version of this build, for `sextant --version`, reports and manifests. CMakeLists.txt is the
// only place with the number; only version.cc is compiled again when it or the commit changes.
#pragma once

#include <string_view>

namespace sextant {

std::string_view version();   // "0.2.0"
std::string_view commit();    // twelve hexadecimal digits; "unknown" outside a git repository
std::string_view libtorch();  // the version that this was built with, or "none"

}  // namespace sextant
