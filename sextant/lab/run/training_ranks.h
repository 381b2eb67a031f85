// The processes that train one model together: `sextant train`, started several times by torchrun
// or srun. No other command of the laboratory forms a group.
#pragma once

#include <cstdint>

#include "sextant/base/launched_rank.h"

namespace sextant::lab {

// This process's place in a training. Variables of Slurm count within a step of srun only: a batch
// script has them as well, and runs once.
LaunchedRank training_rank();

// Throws Error if the rows of a batch cannot be divided among the ranks.
void check_rows(int64_t batch, int64_t ranks);

}  // namespace sextant::lab
