#include "sextant/lab/run/plugin.h"

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/lab/plan/own_methods.h"
#include "sextant/lab/run/arm_process.h"
#include "sextant/lab/torch/device.h"
#include "sextant/lab/torch/evaluate_model.h"
#include "sextant/lab/torch/model_folder.h"
#include "sextant/lab/torch/own_method.h"
#include "sextant/lab/torch/probe_encoding.h"
#include "sextant/lab/torch/run_arm.h"
#include "sextant/torch/method.h"
#include "sextant/version.h"

namespace sextant::lab {
namespace {

std::vector<KnownMethod> known_methods() {
  std::vector<KnownMethod> known;
  for (const MethodInfo& method : methods()) {
    known.push_back({.name = method.name,
                     .summary = method.summary,
                     .formula = method.formula,
                     .options = nlohmann::json::parse(method.defaults).dump(),
                     .grid_option = method.grid_option ? method.grid_option : "",
                     .rows_before_grid = method.rows_before_grid});
  }
  return known;
}

// Encodings of one's own are checked in Python (run/arm_process.h).
void check_arms(const Settings& settings, std::span<const Arm> arms) {
  for (const Arm& arm : arms) {
    check_device_of(arm, settings.device);
    if (!is_own_method(arm.method)) {
      method_of(arm, settings);
    } else if (arm.drop_channels > 0) {
      fail(arm.label + ": drop_channels: expected 0, as it adds no vector to the input, but got " +
           std::to_string(arm.drop_channels));
    }
  }
}

void check_device(const std::string& device) { device_named(device); }

int64_t added_channels_of(const Settings& settings, const Arm& arm) {
  return is_own_method(arm.method) ? 0 : method_of(arm, settings)->added_channels();
}

int64_t train_length_of(const std::filesystem::path& model) {
  return read_model_config(model).train_length;
}

Ending check_own_arm(const std::string& assignment) {
  const nlohmann::json content = nlohmann::json::parse(assignment);
  const auto arm = content.at("arm").get<Arm>();
  const auto settings = content.at("settings").get<Settings>();
  try_method(*method_of(arm, settings),
             model_shape(model_of(settings, arm), training_of(settings, arm.task).length));
  return Ending::kDone;
}

}  // namespace
}  // namespace sextant::lab

extern "C" const sextant::lab::Plugin* sextant_lab_plugin() {
  static const sextant::lab::Plugin plugin{.version = sextant::version(),
                                           .methods = sextant::lab::known_methods,
                                           .check = sextant::lab::check_arms,
                                           .check_device = sextant::lab::check_device,
                                           .added_channels = sextant::lab::added_channels_of,
                                           .cost = sextant::lab::cost_of_arm,
                                           .run_arm = sextant::lab::run_arm,
                                           .join_training = sextant::lab::join_training,
                                           .obstacle = sextant::lab::obstacle,
                                           .train_length = sextant::lab::train_length_of,
                                           .evaluate_model = sextant::lab::evaluate_model,
                                           .extend_model = sextant::lab::extend_model,
                                           .write_extended = sextant::lab::write_extended,
                                           .probe_encoding = sextant::lab::probe_encoding};
  return &plugin;
}

extern "C" int sextant_lab_arm(const char* folder, double save_seconds, int progress_file) {
  const sextant::lab::ArmProcess process{.save_seconds = save_seconds,
                                         .progress_file = progress_file};
  return sextant::lab::run_arm_process(process, [&](const sextant::lab::Watch& watch) {
    return sextant::lab::status_of(sextant::lab::run_arm(folder, watch));
  });
}

extern "C" int sextant_lab_check(const char* assignment, int progress_file) {
  const sextant::lab::ArmProcess process{.progress_file = progress_file};
  return sextant::lab::run_arm_process(process, [&](const sextant::lab::Watch&) {
    return sextant::lab::status_of(sextant::lab::check_own_arm(assignment));
  });
}
