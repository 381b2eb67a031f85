#include "sextant/lab/report/claimed_arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "sextant/lab/plan/same_arm.h"
#include "sextant/lab/run/survey.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

// An option of the survey, whose value claims leave open: "tune=N".
struct Placeholder {
  const char* option;
  const char* letter;

  std::string text() const { return fmt::format("{}={}", option, letter); }
};
constexpr Placeholder kPlaceholders[] = {{"tune", "N"}, {"drop_channels", "K"}, {"memory", "M"}};

std::string replaced(std::string arm, const Placeholder& placeholder, const std::string& value) {
  const std::string text = placeholder.text();
  const size_t at = arm.find(text);
  if (at != std::string::npos) {
    arm.replace(at, text.size(), fmt::format("{}={}", placeholder.option, value));
  }
  return arm;
}

const Placeholder* placeholder_in(const Claim& claim) {
  const auto* const found = std::ranges::find_if(kPlaceholders, [&](const Placeholder& one) {
    return (claim.method + std::string(" ") + claim.other).find(one.text()) != std::string::npos;
  });
  return found == std::end(kPlaceholders) ? nullptr : found;
}

std::string value_to_run(const Placeholder& placeholder) {
  const std::string_view letter = placeholder.letter;
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

// Whether this version reads the survey's own options of the arm: one that it does not know is left
// among the options of the method.
bool is_known(const Arm& arm) {
  const json options = json::parse(arm.options);
  return std::ranges::none_of(kPlaceholders, [&](const Placeholder& placeholder) {
    return options.contains(placeholder.option);
  });
}

}  // namespace

SurveyTask task_of(const Settings& settings) {
  return settings.objective == Task::kMasked ? SurveyTask::kMasked : SurveyTask::kCausal;
}

std::vector<ClaimedArms> instances(const Claim& claim, std::span<const Arm> arms) {
  const Placeholder* const placeholder = placeholder_in(claim);
  if (placeholder == nullptr) return {{.method = claim.method, .other = claim.other}};
  std::set<int64_t> values;
  for (const Arm& arm : arms) {
    const int64_t value = json(arm).value(placeholder->option, int64_t{0});
    if (value > 0) values.insert(value);
  }
  std::vector<ClaimedArms> all;
  for (const int64_t value : values) {
    const std::string text = std::to_string(value);
    all.push_back({.method = replaced(claim.method, *placeholder, text),
                   .other = replaced(claim.other, *placeholder, text)});
  }
  return all;
}

std::optional<json> claimed_identity(const std::string& arm, Task task, const Settings& settings) {
  const std::optional<MadeArm> found = made(arm, task, settings);
  if (!found || !is_known(found->arm)) return {};
  return identity_of(found->arm, found->trained ? &*found->trained : nullptr);
}

std::vector<std::string> arms_of_claims(SurveyTask task, bool only_open, const Settings& settings) {
  std::vector<std::string> all;
  const auto add = [&](std::string arm) {
    if (arm.empty()) return;
    for (const Placeholder& placeholder : kPlaceholders) {
      arm = replaced(arm, placeholder, value_to_run(placeholder));
    }
    if (std::ranges::find(all, arm) != all.end()) return;
    const std::optional<MadeArm> found = made(arm, Task::kText, settings);
    if (found && is_known(found->arm)) all.push_back(arm);
  };
  for (const ClaimSubject& subject : claim_subjects()) {
    for (const Claim& claim : subject.claims) {
      if (claim.task != task || (only_open && *claim.question == '\0')) continue;
      add(claim.method);
      add(claim.other);
    }
  }
  return all;
}

}  // namespace sextant::lab
