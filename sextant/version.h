/* The version of these headers, for C and C++. Below 1.0 a minor version may change interfaces, and
   the shared libraries carry it in their SONAME; a patch version changes neither. docs/cpp.md says
   which headers are the API. The build fails if CMakeLists.txt has another version. */
#ifndef SEXTANT_VERSION_H
#define SEXTANT_VERSION_H

#define SEXTANT_VERSION_MAJOR 0
#define SEXTANT_VERSION_MINOR 2
#define SEXTANT_VERSION_PATCH 0

/* Comparable: 200 for 0.2.0, 10203 for 1.2.3. */
#define SEXTANT_VERSION_NUMBER \
  (10000 * SEXTANT_VERSION_MAJOR + 100 * SEXTANT_VERSION_MINOR + SEXTANT_VERSION_PATCH)

#ifdef __cplusplus
#include <string_view>

#include "sextant/base/export.h"

namespace sextant {

// The version of the library that runs: "0.2.0".
SEXTANT_API std::string_view version();

}  // namespace sextant
#endif

#endif
