#include "sextant/base/launched_rank.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <utility>

#include "sextant/base/error.h"

namespace sextant {

std::optional<std::string> environment_value(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return {};
  return value;
}

int64_t environment_number(const std::string& name, int64_t low, int64_t high,
                           const std::string& reason) {
  const std::string expected =
      name + ": expected " + std::to_string(low) +
      (high == std::numeric_limits<int>::max() ? " or more" : " to " + std::to_string(high)) +
      reason + ", but ";
  const std::optional<std::string> given = environment_value(name.c_str());
  if (!given) fail("group: " + expected + "it is not set");
  const char* const stop = given->data() + given->size();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(given->data(), stop, value);
  if (error != std::errc() || end != stop || value < low || value > high)
    fail("group: " + expected + "got " + *given);
  return value;
}

LaunchedRank launched_rank() {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  for (const auto& [rank, size] :
       {std::pair{"RANK", "WORLD_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}}) {
    if (!environment_value(rank) && !environment_value(size)) continue;
    LaunchedRank found;
    found.size = environment_number(size, 1, kMost, ", the number of processes");
    found.rank = environment_number(rank, 0, found.size - 1, std::string(", below ") + size);
    return found;
  }
  return {};
}

}  // namespace sextant
