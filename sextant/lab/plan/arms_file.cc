#include "sextant/lab/plan/arms_file.h"

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/plan/settings_file.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

ArmRequest request_in(const json& arm, const std::string& where) {
  if (arm.is_string()) return request_of(arm.get<std::string>(), where + ": arms");
  JsonFields fields(arm, where + ": arms");
  ArmRequest request;
  fields.read("method", request.method);
  request.label = request.method;
  if (arm.contains("label")) fields.read("label", request.label);
  if (arm.contains("options")) {
    const json& options = fields.at("options");
    if (!options.is_object()) {
      fail(where + ": arms: options: expected an object, but got " + options.dump());
    }
    request.options = options.dump();
  }
  fields.finish();
  check_label(where + ": arms", request.label);
  return request;
}

}  // namespace

ArmsFile read_arms_file(const std::filesystem::path& path) {
  return arms_file_of(read_settings_file(path), path.string());
}

ArmsFile arms_file_of(const json& content, const std::string& where) {
  JsonFields fields(content, where);
  ArmsFile file;
  const json& arms = fields.at("arms");
  if (!arms.is_array() || arms.empty()) {
    fail(where + ": arms: expected a list of methods, but got " + arms.dump());
  }
  for (const json& arm : arms) file.arms.push_back(request_in(arm, where));
  for (size_t n = 0; n < file.arms.size(); ++n) {
    for (size_t other = 0; other < n; ++other) {
      if (file.arms[n].label == file.arms[other].label) {
        fail(where + ": arms: label: expected each once, but got " + file.arms[n].label + " twice");
      }
    }
  }
  if (content.contains("settings")) {
    const json& settings = fields.at("settings");
    if (!settings.is_object()) {
      fail(where + ": settings: expected an object, but got " + settings.dump());
    }
    file.settings = settings.dump();
  }
  fields.finish();
  return file;
}

Settings laid_over(const Settings& settings, const std::string& text, const std::string& where) {
  json whole = settings;
  whole.merge_patch(json::parse(text));
  try {
    return whole.get<Settings>();
  } catch (const Error& error) {
    fail(where + ": " + error.what());
  }
}

}  // namespace sextant::lab
