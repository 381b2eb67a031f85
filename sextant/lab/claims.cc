#include "sextant/lab/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sextant/error.h"

namespace sextant::lab {
namespace {

// Student's t at 0.975 for 1, 2, ... degrees of freedom; beyond, 1.96 + 2.5 / n is right to 0.002.
constexpr std::array<double, 20> kStudent = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                             2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                             2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
constexpr double kNormal = 1.960;

double student(size_t freedom) {
  if (freedom <= kStudent.size()) return kStudent.at(freedom - 1);
  return kNormal + 2.5 / static_cast<double>(freedom);
}

// What is measured of a method.
struct Measure {
  Mean AtLength::*what;
  bool at_longest;  // else at the training length
  const char* name;
};
constexpr Measure kChange = {&AtLength::sliding_change, true, "change of the sliding loss"};
constexpr Measure kTrained = {&AtLength::sliding, false, "sliding loss at the training length"};
constexpr Measure kLongest = {&AtLength::sliding, true, "sliding loss at the longest length"};

// measure(method) - measure(other, if there is one) is below, or above, a bound.
struct Claim {
  const char* claim;
  const char* source;
  Measure measure;
  const char* method;
  const char* other;  // "" for none
  bool below;
  double bound;
};

constexpr const char* kAlibi = "Press et al. 2022 (arXiv 2108.12409)";
constexpr const char* kKerple = "Chi et al. 2022 (arXiv 2205.09921)";
constexpr const char* kSandwich = "Chi et al. 2023 (arXiv 2212.10356)";

// Bounds of single methods are those of the table's words.
constexpr Claim kClaims[] = {
    {"Sinusoidal positions break past the training length", kAlibi, kChange, "sinusoidal", "",
     false, kBreaksAbove},
    {"RoPE breaks past the training length", kAlibi, kChange, "rope", "", false, kBreaksAbove},
    {"Learned positions have no value past the training length", kAlibi, kChange, "learned", "",
     false, kBreaksAbove},
    {"ALiBi holds past the training length", kAlibi, kChange, "alibi", "", true, kHoldsBelow},
    {"ALiBi gets better with longer texts", kAlibi, kChange, "alibi", "", true, 0},
    {"ALiBi is better than sinusoidal positions at the training length", kAlibi, kTrained, "alibi",
     "sinusoidal", true, 0},
    {"T5's bias holds past the training length", kAlibi, kChange, "t5", "", true, kHoldsBelow},
    {"KERPLE (log) holds past the training length", kKerple, kChange, "kerple-log", "", true,
     kHoldsBelow},
    {"KERPLE (log) is better than ALiBi on the longest texts", kKerple, kLongest, "kerple-log",
     "alibi", true, 0},
    {"KERPLE (power) holds past the training length", kKerple, kChange, "kerple-power", "", true,
     kHoldsBelow},
    {"Sandwich holds past the training length", kSandwich, kChange, "sandwich", "", true,
     kHoldsBelow},
    {"Sandwich is no worse than ALiBi on the longest texts", kSandwich, kLongest, "sandwich",
     "alibi", true, 0},
    {"XPOS loses less than RoPE past the training length", "Sun et al. 2022 (arXiv 2212.10554)",
     kChange, "xpos", "rope", true, 0},
    {"Transformer-XL's encoding holds past the training length",
     "Dai et al. 2019 (arXiv 1901.02860)", kChange, "transformer-xl", "", true, kHoldsBelow},
    {"Hierarchical positions lose less than learned ones past the training length",
     "Su 2020 (kexue.fm 7947)", kChange, "hierarchical", "learned", true, 0},
    {"No encoding at all loses less than RoPE past the training length",
     "Kazemnejad et al. 2023 (arXiv 2305.19466)", kChange, "none", "rope", true, 0},
    {"A window as long as the training texts keeps RoPE from breaking", "Su 2023 (kexue.fm 9431)",
     kChange, "window", "", true, kHoldsBelow},
};

const MethodResult* find(std::span<const MethodResult> methods, const std::string& label) {
  const auto found = std::ranges::find(methods, label, &MethodResult::label);
  return found == methods.end() || found->seeds.empty() ? nullptr : &*found;
}

const Mean& of_seed(const ArmResult& seed, const Measure& measure, int64_t train_length) {
  if (measure.at_longest) return seed.lengths.back().*(measure.what);
  const auto at = std::ranges::find(seed.lengths, train_length, &AtLength::length);
  if (at == seed.lengths.end()) fail("claims: the training length was not tested");
  return (*at).*(measure.what);
}

const ArmResult* same_seed(const MethodResult& method, uint64_t seed) {
  const auto found = std::ranges::find_if(
      method.seeds, [&](const ArmResult& result) { return result.arm.seed == seed; });
  return found == method.seeds.end() ? nullptr : &*found;
}

// Over the seeds that both have: they share their start, batches and test text.
Interval measured(const Measure& measure, const MethodResult& method, const MethodResult* other,
                  int64_t train_length) {
  std::vector<double> values;
  double block_error = 0;
  for (const ArmResult& seed : method.seeds) {
    Mean mean = of_seed(seed, measure, train_length);
    if (other != nullptr) {
      const ArmResult* const theirs = same_seed(*other, seed.arm.seed);
      if (theirs == nullptr) continue;
      const Mean& minus = of_seed(*theirs, measure, train_length);
      mean = {.value = mean.value - minus.value, .error = std::hypot(mean.error, minus.error)};
    }
    values.push_back(mean.value);
    block_error = mean.error;
  }
  if (values.size() >= 2) return interval95(values);
  if (values.empty()) return {.mean = NAN, .half = INFINITY};
  return {.mean = values.front(), .half = kNormal * block_error};
}

Finding compare(const Interval& interval, bool below, double bound) {
  const double over = (below ? 1 : -1) * (interval.mean - bound);
  if (over + interval.half < 0) return Finding::kHolds;
  return over - interval.half > 0 ? Finding::kFails : Finding::kUndecided;
}

}  // namespace

Interval interval95(std::span<const double> values) {
  if (values.size() < 2) {
    fail(fmt::format("interval: expected two values at least, but got {}", values.size()));
  }
  const Spread over = spread(values);
  const auto count = static_cast<double>(values.size());
  return {.mean = over.mean,
          .half = student(values.size() - 1) * over.deviation.value_or(0) / std::sqrt(count)};
}

std::vector<ClaimFound> claims(std::span<const MethodResult> methods, const Settings& settings) {
  std::vector<ClaimFound> found;
  if (settings.training.bytes < kEnoughBytes) return found;
  for (const Claim& claim : kClaims) {
    const MethodResult* const method = find(methods, claim.method);
    const bool alone = *claim.other == '\0';
    const MethodResult* const other = alone ? nullptr : find(methods, claim.other);
    if (method == nullptr || (!alone && other == nullptr)) continue;
    const Interval interval = measured(claim.measure, *method, other, settings.training.length);
    const std::string minus = alone ? "" : fmt::format(", minus that of {}", claim.other);
    found.push_back(
        {.claim = claim.claim,
         .source = claim.source,
         .finding = compare(interval, claim.below, claim.bound),
         .numbers = fmt::format("{} of {}{}: {:+.3f} ± {:.3f}, said to be {} {:g}",
                                claim.measure.name, claim.method, minus, interval.mean,
                                interval.half, claim.below ? "below" : "above", claim.bound)});
  }
  return found;
}

const char* name(Finding finding) {
  switch (finding) {
    case Finding::kHolds:
      return "holds";
    case Finding::kFails:
      return "fails";
    case Finding::kUndecided:
      break;
  }
  return "undecided";
}

std::string claims_text(std::span<const ClaimFound> claims) {
  if (claims.empty()) return "";
  std::string text = "What the literature says, here (95 % intervals):\n";
  for (const ClaimFound& claim : claims) {
    text += fmt::format("  {:<9}  {}; {}\n             {}\n", name(claim.finding), claim.claim,
                        claim.source, claim.numbers);
  }
  return text;
}

}  // namespace sextant::lab
