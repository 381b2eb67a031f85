// Foreign text as a terminal may show it. The text of a file, a server or an option can have
// control characters, which move the cursor, hide what was printed, or begin a line that passes for
// one of Sextant's own.
//
// C0, DEL and C1 control characters (with the line feed), the separators of lines and paragraphs
// and the overrides of direction are written as JSON escapes them, as \n or \u001b, so that printed
// JSON keeps its meaning. Bytes that are not UTF-8 become U+FFFD. All other characters stay.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

// One line.
std::string printable(std::string_view text);

// Text whose line feeds and tabs are Sextant's own, and stay: tables, JSON.
std::string printable_lines(std::string_view text);

// A message, such as that of an Error, which can have foreign text with line feeds in it: all lines
// but the first are indented, so that none passes for a message of its own.
std::string printable_message(std::string_view text);

}  // namespace sextant
