#include "sextant/build_info.h"

#include "sextant_commit.h"

namespace sextant {

std::string_view commit() { return SEXTANT_COMMIT; }

std::string_view libtorch() { return SEXTANT_LIBTORCH; }

}  // namespace sextant
