#include "sextant/version.h"

#define SEXTANT_TEXT_OF(x) #x
#define SEXTANT_TEXT(x) SEXTANT_TEXT_OF(x)

namespace sextant {
namespace {

constexpr std::string_view kVersion = SEXTANT_TEXT(SEXTANT_VERSION_MAJOR) "." SEXTANT_TEXT(
    SEXTANT_VERSION_MINOR) "." SEXTANT_TEXT(SEXTANT_VERSION_PATCH);
static_assert(kVersion == SEXTANT_PROJECT_VERSION, "CMakeLists.txt has another version");

}  // namespace

std::string_view version() { return kVersion; }

}  // namespace sextant
