// The table claims.json is compiled in, and read strictly at its first use.
#include "sextant/lab/report/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "sextant/base/error.h"
#include "sextant/base/names.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/plan/arms.h"
#include "sextant/lab/plan/same_arm.h"

namespace sextant {

extern const std::string_view kClaims;

}  // namespace sextant

namespace sextant::lab {
namespace {

using nlohmann::json;

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
    subjects.push_back({.name = name, .claims = {}});
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
  if (at != std::string::npos) {
    arm.replace(at, text.size(), fmt::format("{}={}", free.name, value));
  }
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
  std::optional<Arm> trained;
};
std::optional<MadeArm> made(const std::string& text, Task task, const Settings& settings) {
  const std::vector<Arm> arms = make_arms(std::vector{text}, 1, settings);
  std::optional<MadeArm> found;
  for (const Arm& arm : arms) {
    if (arm.task == task && arm.label == text) found = MadeArm{.arm = arm, .trained = {}};
  }
  if (!found) return {};
  for (const Arm& arm : arms) {
    if (arm.name() == found->arm.weights_from) found->trained = arm;
  }
  return found;
}

}  // namespace

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
    for (const FreeOption& free : kFreeOptions) {
      arm = replaced(arm, free, value_to_run(free));
    }
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
