// Prepared arms as the folders that `sextant arm FOLDER...` is given.
#pragma once

#include <string>
#include <vector>

#include "sextant/lab/run/schedule.h"

namespace sextant::lab {

// The arms of these folders. Throws Error for a folder without arm.json.
std::vector<ScheduledArm> arms_in(const std::vector<std::string>& folders);

}  // namespace sextant::lab
