// The name under which the laboratory knows sextant/files/write_file.h.
#pragma once

#include "sextant/files/write_file.h"

namespace sextant::chart {

using sextant::write_file;

}  // namespace sextant::chart
