#include "sextant/lab/result/block_losses.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

Extension extension_of(ModelEvaluation model, const std::vector<CandidateLosses>& losses) {
  std::vector<int64_t> lengths;
  for (const AtLength& at : model.lengths) lengths.push_back(at.length);
  const auto trained =
      static_cast<size_t>(std::ranges::find(lengths, model.reference) - lengths.begin());
  const auto far = [](const CandidateLosses& candidate) {
    return mean_of_blocks(candidate.blocks.back().sliding).value;
  };
  const CandidateLosses& best = *std::ranges::min_element(losses, {}, far);
  const BlockLosses& plain = losses.front().blocks.at(trained);
  Extension extension{.model = std::move(model), .candidates = {}};
  for (const CandidateLosses& each : losses) {
    MeasuredCandidate measured{.candidate = each.candidate,
                               .lengths = at_lengths(lengths, each.blocks, trained),
                               .by_position = each.by_position,
                               .seconds = each.seconds};
    for (size_t n = 0; n < lengths.size(); ++n) {
      measured.lengths[n].loss_change = mean_difference(each.blocks[n].loss, plain.loss);
      measured.lengths[n].sliding_change = mean_difference(each.blocks[n].sliding, plain.sliding);
    }
    measured.behind = mean_difference(each.blocks.back().sliding, best.blocks.back().sliding);
    extension.candidates.push_back(std::move(measured));
  }
  return extension;
}

}  // namespace sextant::lab
