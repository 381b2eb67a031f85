// Arms with an encoding of one's own (plan/own_methods.h), which run in a process of Python:
// python/sextant/own_arm.py opens the plug-in there.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/arm_process.h"

namespace sextant::lab {

// Whether FOLDER/arm.json has such an arm.
bool is_own_arm(const std::filesystem::path& folder);

// Runs the arm in a child process of Python and returns its exit status. Throws Error if it cannot.
int run_own_arm(const std::string& folder, int threads, const ArmProcess& process,
                const Watch& watch);

// Replaces this process by Python, which makes the encoding of an arm and calls it once.
// `assignment` is the arm and its settings as JSON.
[[noreturn]] void become_own_check(const std::string& assignment, int threads, int progress_file);

// Makes each encoding of one's own and calls it once, in processes of Python, so that an error is
// reported before hours of work. Throws Error that names the arm.
void check_own_arms(const Settings& settings, std::span<const Arm> arms);

}  // namespace sextant::lab
