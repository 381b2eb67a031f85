// The arms of a survey as folders and as work.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/schedule.h"

namespace sextant::lab {

// The name of an arm's folder.
std::string folder_name(std::string arm_name);
std::filesystem::path arm_directory(const std::filesystem::path& survey, const Arm& arm);
bool is_done(const std::filesystem::path& survey, const Arm& arm);

// Number of tokens that the tests of an arm of this task process.
double test_tokens(const Settings& settings, Task task);

// Estimated work of an arm, in tokens of a forward pass of the text model.
double work_of(const Settings& settings, const Arm& arm);

// The arms in the given order.
std::vector<ScheduledArm> scheduled(const std::filesystem::path& survey, const Settings& settings,
                                    std::span<const Arm> arms);

}  // namespace sextant::lab
