#include "sextant/lab/report/claimed_arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "sextant/lab/plan/arms.h"
#include "sextant/lab/plan/same_arm.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

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
