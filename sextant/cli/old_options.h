// Old names of options, which work for one version with a warning.
#pragma once

#include <string>
#include <vector>

namespace sextant::cli {

struct RenamedOption {
  const char *command, *old_name, *name;
};

inline constexpr RenamedOption kRenamedOptions[] = {
    {"convert", "--to", "--as"},   {"evaluate", "--plot", "--out"}, {"explain", "--plot", "--out"},
    {"extend", "--plot", "--out"}, {"extend", "--to", "--length"},  {"plot", "--format", "--as"},
    {"train", "--to", "--out"},
};

// The words of a command line with the names of now, after a warning for each old name. Throws
// CLI::ValidationError if an option is given by both names.
std::vector<std::string> with_new_names(std::vector<std::string> words);

}  // namespace sextant::cli
