// This process's place among those that a launcher started, by the environment: torchrun sets RANK
// and WORLD_SIZE, srun SLURM_PROCID and SLURM_NTASKS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sextant {

struct LaunchedRank {
  int64_t rank = 0, size = 1;
};

// One process if there are no such variables. Throws Error that names the variable if one of a pair
// is missing or out of range.
LaunchedRank launched_rank();

// The value of a variable; nullopt if it is empty or not set.
std::optional<std::string> environment_value(const char* name);

// The number in a variable, from `low` to `high`. The Error for a missing or another value has
// `reason`, which says why it is needed.
int64_t environment_number(const std::string& name, int64_t low, int64_t high,
                           const std::string& reason);

}  // namespace sextant
