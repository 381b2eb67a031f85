// The options that select a RoPE configuration, shared by explain and convert.
#pragma once

#include <memory>
#include <string>

#include "sextant/rope_config/read_config.h"

namespace CLI {
class App;
}

namespace sextant::cli {

struct ConfigRequest {
  std::string path;
  Overrides overrides;
};

// Adds --base. `base` lives as long as the command.
void add_base(CLI::App& command, double& base);

// Adds PATH, --base, --local-base, --head-dim. The request lives as long as the command.
std::shared_ptr<ConfigRequest> add_config(CLI::App& command);

}  // namespace sextant::cli
