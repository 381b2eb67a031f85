// Small configurations in each dialect, from which mutations start.
#pragma once

#include <string>
#include <vector>

namespace sextant::fuzz {

// Metadata of several architectures, and a file without any.
std::vector<std::string> gguf_samples();

// Inputs of `sextant explain`: config.json files of several model families, nested ones and some
// without rotation among them, and GGUF files.
std::vector<std::string> config_samples();

std::vector<std::string> flag_samples();

// Tables of model families that have each key.
std::vector<std::string> family_samples();

std::vector<std::string> expression_samples();

}  // namespace sextant::fuzz
