// A claim compares arms seed by seed. It is left out where one of them is missing or not measured,
// and undecided where one has not learned; otherwise the interval of the differences against the
// claim's bound decides. The table claims.json is compiled in, and read strictly at its first use.
#include "sextant/lab/report/claims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "sextant/base/error.h"
#include "sextant/base/names.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/plan/arms.h"
#include "sextant/lab/plan/same_arm.h"
#include "sextant/lab/result/interval.h"

namespace sextant {

extern const std::string_view kClaims;

}  // namespace sextant

namespace sextant::lab {
namespace {

using nlohmann::json;

constexpr Names<Outcome, 4> kOutcomeNames{{{Outcome::kHolds, "holds"},
                                           {Outcome::kFails, "fails"},
                                           {Outcome::kUndecided, "undecided"},
                                           {Outcome::kNotLearned, "not learned"}}};

// The arms of one task of a survey, found by identity.
class ArmFinder {
 public:
  ArmFinder(std::span<const MethodResult> methods, const Settings& settings, bool retrieval,
            const OptionDefaults& defaults)
      : settings_(settings),
        task_(retrieval ? small_task(settings) : text_task(settings)),
        defaults_(defaults),
        arms_(retrieval ? &MethodResult::pairs : &MethodResult::seeds) {
    for (const MethodResult& method : methods) {
      if ((method.*arms_).empty()) continue;
      methods_.push_back(&method);
      const Arm& arm = (method.*arms_).front().arm;
      identities_.push_back(identity_of(arm, trained_for(arm, methods)));
    }
  }

  // The method that is this arm ("shaw:clip=2"), or nullptr.
  const MethodResult* find(const std::string& arm) const {
    const std::optional<json> wanted = claimed_identity(arm, task_, settings_);
    if (!wanted) return nullptr;
    const MethodResult* found = nullptr;
    for (size_t n = 0; n < methods_.size(); ++n) {
      if (identities_[n] != *wanted) continue;
      if (found == nullptr || methods_[n]->label == arm) found = methods_[n];
    }
    for (size_t n = 0; n < methods_.size() && found == nullptr; ++n)
      if (is_wanted(identities_[n], *wanted, defaults_)) found = methods_[n];
    return found;
  }

 private:
  const Arm* trained_for(const Arm& arm, std::span<const MethodResult> methods) const {
    for (const MethodResult& method : methods) {
      for (const ArmResult& seed : method.*arms_)
        if (seed.arm.name() == arm.weights_from) return &seed.arm;
    }
    return nullptr;
  }

  const Settings& settings_;
  Task task_;
  const OptionDefaults& defaults_;
  std::vector<ArmResult> MethodResult::*arms_;
  std::vector<const MethodResult*> methods_;
  std::vector<json> identities_;  // of methods_
};

Outcome outcome_of(const MeanInterval& interval, const Claim& claim) {
  const double over = (claim.side == Side::kBelow ? 1 : -1) * (interval.mean - claim.bound);
  if (over + interval.half.value() < 0) return Outcome::kHolds;
  return over - interval.half.value() > 0 ? Outcome::kFails : Outcome::kUndecided;
}

// The labels of the methods whose lack of learning leaves a claim undecided. `none` is the
// reference of text, with which another method can be compared whatever `none` has learned.
std::vector<std::string> not_learned(Measure measure, const MethodResult& method,
                                     const MethodResult* other) {
  const bool retrieval = is_on_retrieval(measure);
  std::vector<std::string> labels;
  bool any = false;
  for (const MethodResult* const arm : {&method, other}) {
    if (arm == nullptr) continue;
    if ((retrieval ? arm->retrieval : arm->text) != Learned::kNo) {
      any = true;
    } else if (retrieval || other == nullptr || !arm->is_reference) {
      labels.push_back(arm->label);
    }
  }
  if (needs(measure) == Needs::kAny && any) labels.clear();
  return labels;
}

std::optional<CheckedClaim> checked(const Claim& claim, const ArmFinder& finder,
                                    const ClaimedArms& arms, const Settings& settings) {
  const MethodResult* const method = finder.find(arms.method);
  const MethodResult* const other = !has_other(claim) ? nullptr : finder.find(arms.other);
  if (method == nullptr || (has_other(claim) && other == nullptr)) return {};
  if (!is_measured(claim.measure, *method)) return {};
  const std::optional<Measured> found = measured(claim.measure, *method, other, settings);
  if (!found) return {};
  CheckedClaim result{.claim = claim,
                      .method = method->label,
                      .other = other == nullptr ? "" : other->label,
                      .measured = *found,
                      .outcome = outcome_of(found->interval, claim),
                      .not_learned = not_learned(claim.measure, *method, other)};
  if (!result.not_learned.empty()) result.outcome = Outcome::kNotLearned;
  return result;
}

std::vector<Arm> arms_in(std::span<const MethodResult> methods) {
  std::vector<Arm> arms;
  for (const MethodResult& method : methods) {
    if (!method.seeds.empty()) arms.push_back(method.seeds.front().arm);
    if (!method.pairs.empty()) arms.push_back(method.pairs.front().arm);
  }
  return arms;
}

constexpr Names<Side, 2> kSides{{{Side::kBelow, "below"}, {Side::kAbove, "above"}}};

Measure measure_named(const std::string& wanted) {
  const auto found =
      std::ranges::find_if(measures(), [&](Measure one) { return key(one) == wanted; });
  if (found == measures().end()) fail("claims.json: measure: expected a known one, got " + wanted);
  return *found;
}

double bound_named(const json& bound) {
  if (bound.is_number()) return bound.get<double>();
  const auto& rule = bound.get_ref<const std::string&>();
  if (rule == "holds") return kHoldsBelow;
  if (rule == "breaks") return kBreaksAbove;
  if (rule == "retrieves") return kRetrievesFrom;
  if (rule == "same") return kSameLoss;
  fail("claims.json: bound: expected a number, holds, breaks, retrieves or same, got " + rule);
}

Claim claim_of(const json& row) {
  const JsonFields fields(row, "claims.json");
  const json& arms = fields.at("arms");
  const Claim claim{
      .text = fields.string("claim"),
      .source = fields.string("source"),
      .measure = measure_named(fields.string("measure")),
      .method = arms.at(0),
      .other = arms.size() > 1 ? arms.at(1).get<std::string>() : "",
      .side = value_named(kSides, "claims.json: side", fields.string("side")),
      .bound = bound_named(fields.at("bound")),
      .question = fields.optional_string("question").value_or(""),
      .objective = objective_named(fields.optional_string("task").value_or("causal"))};
  fields.finish();
  return claim;
}

std::vector<ClaimSubject> read_subjects() {
  std::vector<ClaimSubject> subjects;
  const json table = json::parse(kClaims);
  for (const auto& [name, rows] : table.items()) {
    subjects.push_back({.name = name});
    for (const json& row : rows) subjects.back().claims.push_back(claim_of(row));
  }
  return subjects;
}

// An option of the survey, whose value claims leave open: "tune=N".
struct FreeOption {
  const char* name;
  const char* letter;

  std::string text() const { return fmt::format("{}={}", name, letter); }
};
constexpr FreeOption kFreeOptions[] = {{"tune", "N"}, {"drop_channels", "K"}, {"memory", "M"}};

std::string replaced(std::string arm, const FreeOption& free, const std::string& value) {
  const std::string text = free.text();
  const size_t at = arm.find(text);
  if (at != std::string::npos) arm.replace(at, text.size(), fmt::format("{}={}", free.name, value));
  return arm;
}

const FreeOption* free_option_of(const Claim& claim) {
  const auto* const found = std::ranges::find_if(kFreeOptions, [&](const FreeOption& one) {
    return (claim.method + " " + claim.other).find(one.text()) != std::string::npos;
  });
  return found == std::end(kFreeOptions) ? nullptr : found;
}

std::string value_to_run(const FreeOption& free) {
  const std::string_view letter = free.letter;
  if (letter == "N") return std::to_string(kOpenTune);
  return letter == "K" ? std::to_string(kOpenChannels) : "L";
}

// The arm of a task and the arm that trains its weights; nullopt if it does not run on the task.
struct MadeArm {
  Arm arm;
  std::optional<Arm> trained = {};
};
std::optional<MadeArm> made(const std::string& text, Task task, const Settings& settings) {
  const std::vector<Arm> arms = make_arms(std::vector{text}, 1, settings);
  std::optional<MadeArm> found;
  for (const Arm& arm : arms) {
    if (arm.task == task && arm.label == text) found = MadeArm{.arm = arm};
  }
  if (!found) return {};
  for (const Arm& arm : arms)
    if (arm.name() == found->arm.weights_from) found->trained = arm;
  return found;
}

}  // namespace

std::vector<CheckedClaim> check_claims(std::span<const MethodResult> methods,
                                       const Settings& settings, const OptionDefaults& defaults) {
  std::vector<CheckedClaim> all;
  if (settings.training.bytes < kEnoughBytes) return all;
  const ArmFinder on_text(methods, settings, /*retrieval=*/false, defaults);
  const ArmFinder on_pairs(methods, settings, /*retrieval=*/true, defaults);
  const std::vector<Arm> arms = arms_in(methods);
  for (const ClaimSubject& subject : claim_subjects()) {
    for (const Claim& claim : subject.claims) {
      if (claim.objective != settings.objective) continue;
      const ArmFinder& finder = is_on_retrieval(claim.measure) ? on_pairs : on_text;
      for (const ClaimedArms& named : instances(claim, arms))
        if (auto found = checked(claim, finder, named, settings)) all.push_back(*found);
    }
  }
  return all;
}

const char* name(Outcome outcome) { return name_in(kOutcomeNames, outcome); }

std::string bound_of(const Claim& claim) {
  return fmt::format("{} {:g}", name(claim.side), claim.bound);
}

std::string measure_of(const Claim& claim, const std::string& method, const std::string& other) {
  const std::string minus = other.empty() ? "" : fmt::format(", minus that of {}", other);
  return fmt::format("{} of {}{}", name(claim.measure), method, minus);
}

ClaimWords words(const CheckedClaim& checked) {
  const std::vector<std::string>& failed = checked.not_learned;
  return {.measure = measure_of(checked.claim, checked.method, checked.other),
          .value = signed_fixed(checked.measured.interval),
          .over = checked.over.empty() ? words(checked.measured) : checked.over,
          .bound = bound_of(checked.claim),
          .reason = failed.empty()
                        ? ""
                        : fmt::format("{} {} not learned the task", fmt::join(failed, " and "),
                                      failed.size() == 1 ? "has" : "have")};
}

std::string claims_text(std::span<const CheckedClaim> claims) {
  if (claims.empty()) return "";
  size_t width = 9;
  for (const CheckedClaim& checked : claims)
    width = std::max(width, std::string(name(checked.outcome)).size());
  std::string text = "What the literature says, here (95 % intervals):\n";
  for (const CheckedClaim& checked : claims) {
    const ClaimWords said = words(checked);
    text += fmt::format("  {:<{}}  {}; {}\n  {:<{}}  {}: {} ({}), said to be {}{}\n",
                        name(checked.outcome), width, checked.claim.text, checked.claim.source, "",
                        width, said.measure, said.value, said.over, said.bound,
                        said.reason.empty() ? "" : "; not decided: " + said.reason);
  }
  return text;
}

const char* name(Side side) { return name_in(kSides, side); }

std::span<const ClaimSubject> claim_subjects() {
  static const std::vector<ClaimSubject> kSubjects = read_subjects();
  return kSubjects;
}

std::vector<ClaimedArms> instances(const Claim& claim, std::span<const Arm> arms) {
  const FreeOption* const option = free_option_of(claim);
  if (option == nullptr) return {{.method = claim.method, .other = claim.other}};
  std::set<int64_t> values;
  for (const Arm& arm : arms) {
    const int64_t value = json(arm).value(option->name, int64_t{0});
    if (value > 0) values.insert(value);
  }
  std::vector<ClaimedArms> all;
  for (const int64_t value : values) {
    const std::string text = std::to_string(value);
    all.push_back({.method = replaced(claim.method, *option, text),
                   .other = replaced(claim.other, *option, text)});
  }
  return all;
}

std::optional<json> claimed_identity(const std::string& arm, Task task, const Settings& settings) {
  const std::optional<MadeArm> found = made(arm, task, settings);
  if (!found) return {};
  return identity_of(found->arm, found->trained ? &*found->trained : nullptr);
}

std::vector<std::string> arms_of_claims(bool only_open, const Settings& settings) {
  std::vector<std::string> all;
  const auto add = [&](std::string arm) {
    if (arm.empty()) return;
    for (const FreeOption& free : kFreeOptions) arm = replaced(arm, free, value_to_run(free));
    if (std::ranges::find(all, arm) == all.end()) all.push_back(arm);
  };
  for (const ClaimSubject& subject : claim_subjects()) {
    for (const Claim& claim : subject.claims) {
      if (claim.objective != settings.objective || (only_open && claim.question.empty())) continue;
      add(claim.method);
      add(claim.other);
    }
  }
  return all;
}

}  // namespace sextant::lab
