#include "sextant/lab/run/prepared_arms.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/checked_json.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/read_file.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/measure.h"
#include "sextant/lab/run/survey_arms.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

ScheduledArm arm_in(const fs::path& folder) {
  if (!fs::exists(folder / kArmFile)) {
    fail("arm: FOLDER: expected a folder of an arm, with " + std::string(kArmFile) + ", but got " +
         folder.string());
  }
  if (is_measured_arm(folder)) {
    return {.name = folder.filename().string(), .folder = folder, .done_file = kMeasuredFile};
  }
  const fs::path path = folder / kArmFile;
  const json file = read_json(path);
  const auto [arm, settings] = naming_file(path, [&] {
    const JsonFields fields(file, kArmFile);
    return std::pair(fields.at("arm").get<Arm>(), fields.at("settings").get<Settings>());
  });
  const fs::path siblings = folder.parent_path();
  const std::string& from = arm.weights_from;
  return {.name = arm.name(),
          .folder = folder,
          .done_file = kResultFile,
          .needs = from.empty() ? fs::path() : siblings / folder_name(from),
          .work = work_of(settings, arm)};
}

}  // namespace

std::vector<ScheduledArm> arms_in(const std::vector<std::string>& folders) {
  std::vector<ScheduledArm> arms;
  for (const std::string& folder : folders) {
    fs::path path = fs::path(folder).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();  // of "FOLDER/"
    arms.push_back(arm_in(path));
  }
  return arms;
}

}  // namespace sextant::lab
