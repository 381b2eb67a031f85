// Small configurations in each dialect, from which mutations start.
#pragma once

#include <string>
#include <vector>

namespace sextant::fuzz {

// Metadata of several architectures, and one file without an architecture.
std::vector<std::string> gguf_samples();

// Inputs of `sextant explain`: config.json files of several model families, some nested and some
// without rotation, and GGUF files.
std::vector<std::string> config_samples();

std::vector<std::string> flag_samples();

// Tables of model families that contain each key.
std::vector<std::string> family_samples();

std::vector<std::string> expression_samples();

}  // namespace sextant::fuzz
