// Conversions between UTF-8 and code points.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sextant {

// False for surrogates and for values above 0x10ffff.
bool is_code_point(char32_t code);

void append_utf8(std::string& text, char32_t code);  // requires is_code_point(code)

// The code point that `text` begins with, whose bytes are removed from `text`. None, and `text` is
// unchanged, if it begins with no valid UTF-8; overlong forms are not valid.
std::optional<char32_t> take_code_point(std::string_view& text);

}  // namespace sextant
