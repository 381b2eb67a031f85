#include "sextant/lab/plan/same_arm.h"

#include <nlohmann/json.hpp>

#include "sextant/rope_config/rope_scaling.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

constexpr const char* kOptions = "options";
constexpr const char* kTrainedBy = "trained";

json without_parts(json identity) {
  identity.erase(kOptions);
  identity.erase(kTrainedBy);
  return identity;
}

bool has_wanted_options(const json& identity, const json& wanted, const OptionDefaults& defaults) {
  const json &given = identity.at(kOptions), &options = wanted.at(kOptions);
  for (const auto& option : options.items())
    if (!given.contains(option.key()) || given.at(option.key()) != option.value()) return false;
  if (given.size() == options.size()) return true;
  if (!defaults) return false;
  const json by_default = json::parse(defaults(identity.at("method").get<std::string>()));
  for (const auto& option : given.items()) {
    if (options.contains(option.key())) continue;
    const auto found = by_default.find(option.key());
    if (found == by_default.end() || *found != option.value()) return false;
  }
  return true;
}

}  // namespace

json identity_of(const Arm& arm, const Arm* trained) {
  json identity = arm;
  for (const char* field : {"label", "seed", "task", "weights_from"}) identity.erase(field);
  json& options = identity.at(kOptions);
  // "yarn*8" is short for an object.
  if (options.contains("stretch") && options.at("stretch").is_string())
    options["stretch"] =
        scaling_of_words(options.at("stretch").get<std::string>(), arm.method + ": stretch");
  identity[kTrainedBy] = trained == nullptr ? json() : identity_of(*trained, nullptr);
  return identity;
}

bool is_wanted(const json& identity, const json& wanted, const OptionDefaults& defaults) {
  if (identity == wanted) return true;
  const json &trained = identity.at(kTrainedBy), &wanted_trained = wanted.at(kTrainedBy);
  if (trained.is_null() != wanted_trained.is_null()) return false;
  if (!trained.is_null() && !is_wanted(trained, wanted_trained, defaults)) return false;
  if (without_parts(identity) != without_parts(wanted)) return false;
  return has_wanted_options(identity, wanted, defaults);
}

}  // namespace sextant::lab
