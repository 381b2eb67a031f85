#include "sextant/cli/old_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "sextant/lab/run/print.h"

namespace sextant::cli {

std::vector<std::string> with_new_names(std::vector<std::string> words) {
  for (const RenamedOption& option : kRenamedOptions) {
    if (words.size() < 2 || words[1] != option.command) continue;
    bool has_old = false, has_new = false;
    const auto end = std::ranges::find(words, "--");  // positional arguments follow
    for (auto word = words.begin(); word != end; ++word) {
      const std::string name = word->substr(0, word->find('='));
      has_new = has_new || name == option.name;
      if (name != option.old_name) continue;
      has_old = true;
      word->replace(0, name.size(), option.name);
    }
    if (!has_old) continue;
    if (has_new)
      throw CLI::ValidationError(fmt::format("{}: {}: expected only {}, its name now, but got both",
                                             option.command, option.old_name, option.name));
    lab::note(
        fmt::format("{}: {}: its name is {} now", option.command, option.old_name, option.name));
  }
  return words;
}

}  // namespace sextant::cli
