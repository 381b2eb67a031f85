// Encodings of one's own, written in Python: the arms whose method is "FILE.py:CLASS", where CLASS
// derives from sextant.Encoding (python/sextant/encoding.py). Their worker is a process of Python,
// which runs the same training and tests; only their operands come from the class.
#pragma once

#include <string>
#include <string_view>

namespace sextant::lab {

// The option of an arm that holds the checksum of the file, so that results belong to its content.
inline constexpr const char* kOwnSource = "source";

// Whether a text is "FILE.py:CLASS", with or without options: "FILE.py:CLASS:OPTION=VALUE".
bool is_own_method(std::string_view text);

// The end of the method in such a text; npos if it has no option.
size_t end_of_own_method(std::string_view text);

// The checksum of the method's file, in hexadecimal. Throws Error that names the method if there is
// no such file.
std::string source_of_own_method(const std::string& method);

}  // namespace sextant::lab
