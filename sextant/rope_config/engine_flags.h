// The flags of one engine as configurations: the parts of read_flags().
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/rope_config/command_line.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

struct EngineConfigs {
  std::vector<RopeConfig> configs;
  int64_t serving_length = 0;  // value of the option below; 0: it is absent
  std::string option;          // "-c"
};

EngineConfigs read_llama_cpp_flags(CommandLine& flags, const Overrides& overrides);
EngineConfigs read_vllm_flags(CommandLine& flags, const Overrides& overrides);

// The base, if one is given, and the head size, as a config.json.
nlohmann::json config_of_flags(const Overrides& overrides, double base);

// Like read_hugging_face(), with errors that name flags instead of config.json.
std::vector<RopeConfig> read_config_of_flags(const nlohmann::json& config,
                                             const Overrides& overrides);

// A length given by a flag, from 0 to kLongestSequence.
int64_t length_of_flag(double value, const std::string& name);

}  // namespace sextant
