// What explain and convert share: the options that name a setting.
#pragma once

#include <memory>
#include <string>

#include "sextant/setting/read_setting.h"

namespace CLI {
class App;
}

namespace sextant::cli {

struct SettingRequest {
  std::string path;
  Overrides overrides;
};

// PATH, --base, --head-dim. The request lives as long as the command.
std::shared_ptr<SettingRequest> add_setting(CLI::App& command);

}  // namespace sextant::cli
