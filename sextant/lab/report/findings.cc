#include "sextant/lab/report/findings.h"

#include <algorithm>

namespace sextant::lab {
namespace {

size_t fewest_seeds(std::span<const MethodResult> methods) {
  size_t seeds = 0;
  for (const MethodResult& method : methods) {
    if (method.seeds.empty()) continue;
    seeds = seeds == 0 ? method.seeds.size() : std::min(seeds, method.seeds.size());
  }
  return seeds;
}

double bytes_per_second(std::span<const ArmResult> results, const Settings& settings) {
  double seconds = 0, bytes = 0;
  for (const ArmResult& result : results) {
    if (result.train_seconds <= 0 || result.diverged || !is_on_text(result.arm.task)) continue;
    seconds += result.train_seconds;
    const TrainingOptions training = training_of(settings, result.arm);
    bytes += static_cast<double>(training.steps() * training.batch * training.length);
  }
  return seconds > 0 ? bytes / seconds : 0;
}

}  // namespace

Findings findings_of(std::span<const ArmResult> results, const Settings& settings,
                     const Background& background) {
  Findings found{.settings = settings,
                 .results = {results.begin(), results.end()},
                 .methods = by_method(results, settings)};
  found.reference =
      judge(found.methods, settings, background.bigrams ? &*background.bigrams : nullptr);
  found.rankings = rankings(found.methods, settings);
  found.claims = check_claims(found.methods, settings, background.defaults);
  found.fewest_seeds = fewest_seeds(found.methods);
  found.has_intervals = std::ranges::any_of(found.methods, [](const MethodResult& method) {
    return std::max(method.seeds.size(), method.pairs.size()) > 1;
  });
  found.bytes_per_second = bytes_per_second(results, settings);
  return found;
}

}  // namespace sextant::lab
