// Words of a command line that is shown to a person, who copies it.
#pragma once

#include <string>

namespace sextant::lab {

// The word in quotes if a shell would read it as anything else without.
std::string shell_word(std::string word);

}  // namespace sextant::lab
