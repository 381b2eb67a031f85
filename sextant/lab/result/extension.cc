#include "sextant/lab/result/extension.h"

#include <algorithm>
#include <utility>

namespace sextant::lab {

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
