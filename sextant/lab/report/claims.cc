#include "sextant/lab/report/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sextant/lab/report/format_number.h"

namespace sextant::lab {
namespace {

using enum Measure;

constexpr const char* kAlibi = "Press et al. 2022 (arXiv 2108.12409)";
constexpr const char* kKerple = "Chi et al. 2022 (arXiv 2205.09921)";
constexpr const char* kSandwich = "Chi et al. 2023 (arXiv 2212.10356)";
constexpr const char* kPi = "Chen et al. 2023 (arXiv 2306.15595)";
constexpr const char* kYarn = "Peng et al. 2023 (arXiv 2309.00071)";
constexpr const char* kRerope = "Su 2023 (kexue.fm 9708)";
constexpr const char* kLocal = "Kazemnejad et al. 2023 (arXiv 2305.19466)";
constexpr const char* kLogN = "Su 2021 (kexue.fm 8823)";

// Bounds of single methods are the thresholds of method_result.h.
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
    // Retrieval, whose failures a loss on text does not show; local methods first.
    {"A window finds nothing beyond itself", kRerope, kFar, "window", "", true, kRetrievesFrom},
    {"Chunks find nothing beyond themselves", kRerope, kFar, "chunk", "", true, kRetrievesFrom},
    {"ALiBi does not find what lies far back", kSandwich, kFar, "alibi", "", true, kRetrievesFrom},
    {"KERPLE (log) does not find what lies far back", kSandwich, kFar, "kerple-log", "", true,
     kRetrievesFrom},
    {"Sandwich does not find what lies far back", kSandwich, kFar, "sandwich", "", true,
     kRetrievesFrom},
    {"RoPE does not find what lies far back", kLocal, kFar, "rope", "", true, kRetrievesFrom},
    {"T5's bias finds more than RoPE far back", kLocal, kFar, "t5", "rope", false, 0},
    {"No encoding at all finds more than RoPE far back", kLocal, kFar, "none", "rope", false, 0},
    // Stretches of a trained RoPE without further training.
    {"PI without more training is worse than RoPE as it is", kPi, kLongest, "pi", "rope", false, 0},
    {"NTK is better than RoPE as it is", "bloc97 2023", kLongest, "ntk", "rope", true, 0},
    {"NTK is better than PI", "bloc97 2023", kLongest, "ntk", "pi", true, 0},
    {"YaRN is better than NTK", kYarn, kLongest, "yarn", "ntk", true, 0},
    {"YaRN with a ramp that suits L is better than NTK", kYarn, kLongest, "yarn-8-turns", "ntk",
     true, 0},
    {"ReRoPE is better than YaRN", kRerope, kLongest, "rerope", "yarn", true, 0},
    {"ReRoPE is better than YaRN with a ramp that suits L", kRerope, kLongest, "rerope",
     "yarn-8-turns", true, 0},
    {"ReRoPE keeps RoPE from breaking", kRerope, kChange, "rerope", "", true, kHoldsBelow},
    {"Leaky ReRoPE keeps RoPE from breaking", kRerope, kChange, "leaky-rerope", "", true,
     kHoldsBelow},
    {"Self-Extend keeps RoPE from breaking", "Jin et al. 2024 (arXiv 2401.01325)", kChange,
     "self-extend", "", true, kHoldsBelow},
    {"ReRoPE with a window of the training length collapses", kRerope, kChange, "rerope:window=L",
     "", false, kBreaksAbove},
    {"ReRoPE finds more than YaRN far back", kRerope, kFar, "rerope", "yarn", false, 0},
    {"Log n makes ReRoPE find more far back", kLogN, kFar, "rerope:log_n=L", "rerope", false, 0},
    {"Log n makes ReRoPE's loss lower", kLogN, kLongest, "rerope:log_n=L", "rerope", true, 0},
    {"Log n makes RoPE find more far back", kLogN, kFar, "log-n", "rope", false, 0},
    {"Log n makes RoPE's loss lower", kLogN, kLongest, "log-n", "rope", true, 0},
    {"Dynamic PI is no worse than PI within the training length", kYarn, kTrained, "dynamic-pi",
     "pi", true, 0},
    {"Dynamic NTK is no worse than NTK within the training length", kYarn, kTrained, "dynamic-ntk",
     "ntk", true, 0},
    {"Dynamic YaRN is no worse than YaRN within the training length", kYarn, kTrained,
     "dynamic-yarn", "yarn-8-turns", true, 0},
};

// The method with this label, if it has this measure; else nullptr.
const MethodResult* find(std::span<const MethodResult> methods, const std::string& label,
                         Measure measure) {
  const auto found = std::ranges::find(methods, label, &MethodResult::label);
  return found == methods.end() || !is_measured(measure, *found) ? nullptr : &*found;
}

Outcome outcome_of(const MeanInterval& interval, bool below, double bound) {
  const double over = (below ? 1 : -1) * (interval.mean - bound);
  if (over + interval.half.value() < 0) return Outcome::kHolds;
  return over - interval.half.value() > 0 ? Outcome::kFails : Outcome::kUndecided;
}

}  // namespace

std::vector<CheckedClaim> check_claims(std::span<const MethodResult> methods,
                                       const Settings& settings) {
  std::vector<CheckedClaim> checked;
  if (settings.training.bytes < kEnoughBytes) return checked;
  for (const Claim& claim : kClaims) {
    const MethodResult* const method = find(methods, claim.method, claim.measure);
    const bool alone = *claim.other == '\0';
    const MethodResult* const other = alone ? nullptr : find(methods, claim.other, claim.measure);
    if (method == nullptr || (!alone && other == nullptr)) continue;
    const std::optional<Measured> found = measured(claim.measure, *method, other, settings);
    if (!found) continue;
    checked.push_back({.claim = claim,
                       .measured = *found,
                       .outcome = outcome_of(found->interval, claim.below, claim.bound)});
  }
  return checked;
}

const char* name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHolds:
      return "holds";
    case Outcome::kFails:
      return "fails";
    case Outcome::kUndecided:
      break;
  }
  return "undecided";
}

ClaimWords words(const CheckedClaim& checked) {
  const Claim& claim = checked.claim;
  const bool alone = *claim.other == '\0';
  const std::string minus = alone ? "" : fmt::format(", minus that of {}", claim.other);
  return {.measure = fmt::format("{} of {}{}", name(claim.measure), claim.method, minus),
          .value = signed_fixed(checked.measured.interval),
          .over = words(checked.measured),
          .bound = fmt::format("{} {:g}", claim.below ? "below" : "above", claim.bound)};
}

std::string claims_text(std::span<const CheckedClaim> claims) {
  if (claims.empty()) return "";
  std::string text = "What the literature says, here (95 % intervals):\n";
  for (const CheckedClaim& checked : claims) {
    const ClaimWords said = words(checked);
    text += fmt::format("  {:<9}  {}; {}\n             {}: {} ({}), said to be {}\n",
                        name(checked.outcome), checked.claim.text, checked.claim.source,
                        said.measure, said.value, said.over, said.bound);
  }
  return text;
}

}  // namespace sextant::lab
