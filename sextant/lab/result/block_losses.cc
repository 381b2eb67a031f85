#include "sextant/lab/result/block_losses.h"

#include <cmath>

namespace sextant::lab {
namespace {

// Rounds to 1e-6 to keep result files short; another seed changes a loss by at least 0.001.
std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = std::round(value * 1e6) / 1e6;
  return values;
}

}  // namespace

Mean mean_of_blocks(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Mean mean;
  for (const double value : values) mean.value += value / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean.value) * (value - mean.value);
  mean.error = std::sqrt(squares / (count - 1) / count);
  return mean;
}

Mean mean_difference(std::span<const double> values, std::span<const double> reference) {
  std::vector<double> differences;
  for (size_t n = 0; n < values.size(); ++n) differences.push_back(values[n] - reference[n]);
  return mean_of_blocks(differences);
}

std::vector<AtLength> at_lengths(std::span<const int64_t> lengths,
                                 std::span<const BlockLosses> blocks, size_t reference) {
  std::vector<AtLength> found;
  for (size_t n = 0; n < lengths.size(); ++n) {
    const BlockLosses &here = blocks[n], &there = blocks[reference];
    found.push_back({.length = lengths[n],
                     .loss = mean_of_blocks(here.loss),
                     .sliding = mean_of_blocks(here.sliding),
                     .loss_change = mean_difference(here.loss, there.loss),
                     .sliding_change = mean_difference(here.sliding, there.sliding),
                     .sliding_blocks = rounded(here.sliding)});
  }
  return found;
}

}  // namespace sextant::lab
