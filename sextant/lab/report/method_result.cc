// Arms are grouped by label; each value is a mean over seeds with its interval, and a difference is
// taken seed by seed before the mean.
#include "sextant/lab/report/method_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sextant/base/error.h"
#include "sextant/base/names.h"

namespace sextant::lab {
namespace {

constexpr Names<Verdict, 5> kVerdicts{{{Verdict::kHolds, "holds"},
                                       {Verdict::kDrifts, "drifts"},
                                       {Verdict::kBreaks, "breaks"},
                                       {Verdict::kDiverged, "diverged"},
                                       {Verdict::kNotLearned, "not learned"}}};

// The mean of a value over arms.
MeanInterval mean_over(std::span<const ArmResult> arms, const auto& value_of) {
  std::vector<double> values;
  for (const ArmResult& arm : arms) values.push_back(value_of(arm));
  return interval95(values);
}

std::vector<LossMeans> losses_of(std::span<const ArmResult> seeds) {
  std::vector<LossMeans> losses;
  for (size_t n = 0; n < seeds.front().lengths.size(); ++n) {
    const auto mean = [&](Mean AtLength::*what) {
      return mean_over(seeds,
                       [&](const ArmResult& seed) { return (seed.lengths.at(n).*what).value; });
    };
    losses.push_back({.length = seeds.front().lengths[n].length,
                      .loss = mean(&AtLength::loss),
                      .sliding = mean(&AtLength::sliding),
                      .loss_change = mean(&AtLength::loss_change),
                      .sliding_change = mean(&AtLength::sliding_change)});
  }
  return losses;
}

// The mean over seeds of each element of a list.
std::vector<MeanInterval> means_of(std::span<const ArmResult> seeds,
                                   std::vector<double> ArmResult::*list) {
  std::vector<MeanInterval> means;
  for (size_t n = 0; n < (seeds.front().*list).size(); ++n)
    means.push_back(mean_over(seeds, [&](const ArmResult& seed) { return (seed.*list).at(n); }));
  return means;
}

MeanInterval attention_mean(std::span<const ArmResult> seeds, double AttentionAt::*what,
                            int64_t length) {
  return mean_over(seeds, [&](const ArmResult& seed) {
    double sum = 0, layers = 0;
    for (const AttentionAt& at : seed.attention) {
      if (at.length != length) continue;
      sum += at.*what;
      ++layers;
    }
    return sum / layers;
  });
}

std::vector<double> shares_by_distance(std::span<const ArmResult> seeds, int64_t length) {
  std::vector<double> sum;
  double count = 0;
  for (const ArmResult& seed : seeds) {
    for (const AttentionAt& at : seed.attention) {
      if (at.length != length || at.at_distance.empty()) continue;
      sum.resize(std::max(sum.size(), at.at_distance.size()), 0);
      for (size_t n = 0; n < at.at_distance.size(); ++n) sum[n] += at.at_distance[n];
      ++count;
    }
  }
  for (double& value : sum) value /= count;
  return sum;
}

std::vector<AttentionMeans> attention_of(std::span<const ArmResult> seeds,
                                         const Settings& settings) {
  std::vector<AttentionMeans> all;
  if (seeds.front().attention.empty()) return all;
  for (const int64_t length : {settings.training.length, settings.test.longest()})
    all.push_back({.length = length,
                   .span = attention_mean(seeds, &AttentionAt::span, length),
                   .entropy = attention_mean(seeds, &AttentionAt::entropy, length),
                   .at_distance = shares_by_distance(seeds, length)});
  return all;
}

std::vector<AccuracyMean> accuracies_of(std::span<const ArmResult> pairs) {
  std::vector<AccuracyMean> all;
  for (const AtDistance& asked : pairs.front().retrieval) {
    std::vector<double> values;
    for (const ArmResult& seed : pairs) {
      for (const AtDistance& at : seed.retrieval) {
        if (at.length == asked.length && at.distance == asked.distance)
          values.push_back(at.accuracy.value);
      }
    }
    all.push_back(
        {.length = asked.length, .distance = asked.distance, .accuracy = interval95(values)});
  }
  return all;
}

const AtLength& at_length(const ArmResult& result, int64_t length) {
  const auto at = std::ranges::find(result.lengths, length, &AtLength::length);
  if (at == result.lengths.end()) fail(fmt::format("results: length {} was not tested", length));
  return *at;
}

// The losses at L of the method's base, or of itself if there are no results of a base.
std::vector<TrainedLoss> trained_losses(const MethodResult& method,
                                        std::span<const MethodResult> methods,
                                        const Settings& settings) {
  const auto base = std::ranges::find(methods, method.base, &MethodResult::label);
  const bool own = base == methods.end() || base->seeds.empty();
  std::vector<TrainedLoss> losses;
  for (const ArmResult& seed : own ? method.seeds : base->seeds)
    losses.push_back({.seed = seed.arm.seed, .at = at_length(seed, settings.training.length)});
  return losses;
}

// The loss of a method at a length minus that of its base at L, seed by seed.
MeanInterval change_of(const MethodResult& method, int64_t length) {
  std::vector<double> values;
  for (const ArmResult& seed : method.seeds) {
    const auto from = std::ranges::find(method.from, seed.arm.seed, &TrainedLoss::seed);
    if (from == method.from.end()) continue;
    values.push_back(at_length(seed, length).sliding.value - from->at.sliding.value);
  }
  return interval95(values);
}

Verdict verdict_on(double change) {
  return change > kBreaksAbove  ? Verdict::kBreaks
         : change > kHoldsBelow ? Verdict::kDrifts
                                : Verdict::kHolds;
}

std::vector<MethodResult> grouped(std::span<const ArmResult> results) {
  std::vector<MethodResult> methods;
  for (const ArmResult& result : results) {
    auto found = std::ranges::find(methods, result.arm.label, &MethodResult::label);
    if (found == methods.end())
      found = methods.insert(
          methods.end(), {.label = result.arm.label, .drop_channels = result.arm.drop_channels});
    for (const ArmResult& other : results)
      if (other.arm.name() == result.arm.weights_from) found->base = other.arm.label;
    const bool pairs = !is_on_text(result.arm.task);
    if (!result.diverged) {
      (pairs ? found->pairs : found->seeds).push_back(result);
    } else if (!pairs) {
      ++found->diverged;
    }
  }
  return methods;
}

}  // namespace

const char* name(Verdict verdict) { return name_in(kVerdicts, verdict); }

const LossMeans& MethodResult::losses_at(int64_t length) const {
  const auto at = std::ranges::find(losses, length, &LossMeans::length);
  if (at == losses.end()) fail(fmt::format("results: length {} was not tested", length));
  return *at;
}

std::optional<MeanInterval> MethodResult::accuracy_at(int64_t length, int64_t distance) const {
  for (const AccuracyMean& at : accuracies)
    if (at.length == length && at.distance == distance) return at.accuracy;
  return {};
}

std::optional<MeanInterval> MethodResult::mean_accuracy_at(int64_t length) const {
  std::vector<double> values;
  for (const ArmResult& seed : pairs) {
    double sum = 0, count = 0;
    for (const AtDistance& at : seed.retrieval) {
      if (at.length != length) continue;
      sum += at.accuracy.value;
      ++count;
    }
    if (count > 0) values.push_back(sum / count);
  }
  if (values.empty()) {  // only means were kept
    for (const AccuracyMean& at : accuracies)
      if (at.length == length) values.push_back(at.accuracy.mean);
    if (!values.empty()) return MeanInterval{.mean = interval95(values).mean};
    return {};
  }
  return interval95(values);
}

bool has_products(const MethodResult& method) {
  return method.base.empty() && !method.seeds.empty() &&
         std::ranges::all_of(method.seeds,
                             [](const ArmResult& seed) { return !seed.positions.heads.empty(); });
}

double mean_share(const ArmResult& arm, double HeadProducts::*share, std::optional<int64_t> layer) {
  double sum = 0, heads = 0;
  for (const HeadProducts& head : arm.positions.heads) {
    if ((layer && head.layer != *layer) || std::isnan(head.*share)) continue;
    sum += head.*share;
    ++heads;
  }
  return sum / heads;
}

std::vector<MethodResult> by_method(std::span<const ArmResult> results, const Settings& settings) {
  std::vector<MethodResult> methods = grouped(results);
  for (MethodResult& method : methods) {
    method.is_base = std::ranges::any_of(methods, [&](const MethodResult& other) {
      return other.base == method.label && other.drop_channels == 0;
    });
    if (!method.pairs.empty()) method.accuracies = accuracies_of(method.pairs);
    if (method.seeds.empty()) continue;
    method.losses = losses_of(method.seeds);
    if (method.losses.empty()) continue;  // only means were kept (survey_record.h)
    method.loss_at = means_of(method.seeds, &ArmResult::loss_at);
    method.train_loss = means_of(method.seeds, &ArmResult::train_loss);
    method.attention = attention_of(method.seeds, settings);
    method.from = trained_losses(method, methods, settings);
    for (const int64_t length : settings.test.lengths)
      method.changes.push_back(change_of(method, length));
    method.change = method.changes.back();
    if (method.drop_channels > 0) method.lost = change_of(method, settings.training.length);
    method.verdict = verdict_on(method.change.mean);
  }
  return methods;
}

}  // namespace sextant::lab
