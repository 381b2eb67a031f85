// Shell quoting for printed command lines that the user may copy.
#pragma once

#include <string>

namespace sextant::lab {

// Returns the word, quoted if a shell would change it otherwise.
std::string shell_word(std::string word);

}  // namespace sextant::lab
