// Command lines as a shell splits them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sextant {

// The words of a line; quotes keep spaces. Throws Error for a quote that is not closed.
std::vector<std::string> shell_words(const std::string& text);

// The words of the line that a shell is given (sh -c "llama-server ...") in place of the shell.
std::vector<std::string> without_shell(std::vector<std::string> words);

// Parses a number of a command line.

// The finite number that the whole text represents; none for any other text.
std::optional<double> parse_number(const std::string& text);

}  // namespace sextant
