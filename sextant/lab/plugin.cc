#include "sextant/lab/plugin.h"

#include <nlohmann/json.hpp>

#include "sextant/lab/encode.h"
#include "sextant/lab/run_arm.h"
#include "sextant/torch/method.h"

namespace sextant::lab {
namespace {

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const MethodInfo& method : methods()) names.push_back(method.name);
  return names;
}

void check_arms(const Settings& settings, std::span<const Arm> arms) {
  for (const Arm& arm : arms) method_of(arm, settings);
}

}  // namespace
}  // namespace sextant::lab

extern "C" const sextant::lab::Plugin* sextant_lab_plugin() {
  static const sextant::lab::Plugin plugin{.version = SEXTANT_VERSION,
                                           .methods = sextant::lab::method_names,
                                           .check = sextant::lab::check_arms,
                                           .run_arm = sextant::lab::run_arm,
                                           .encode = sextant::lab::encode};
  return &plugin;
}
