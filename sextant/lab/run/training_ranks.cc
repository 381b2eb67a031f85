#include "sextant/lab/run/training_ranks.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "sextant/base/error.h"

namespace sextant::lab {

LaunchedRank training_rank() {
  const bool by_torchrun = environment_value("RANK") || environment_value("WORLD_SIZE");
  const std::optional<std::string> tasks = environment_value("SLURM_STEP_NUM_TASKS");
  if (!by_torchrun && (!tasks || *tasks == "1")) return {};
  return launched_rank();
}

void check_rows(int64_t batch, int64_t ranks) {
  if (batch % ranks != 0) {
    fail(fmt::format(
        "training: batch: expected a multiple of {}, the number of processes, but got {}", ranks,
        batch));
  }
}

}  // namespace sextant::lab
