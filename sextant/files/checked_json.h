// The parser of JSON that comes from outside. Values deeper than kDeepestJson are refused, because
// copying, comparing and printing them would exhaust the stack.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant {

inline constexpr int kDeepestJson = 64;

// Throws Error that begins with `where` for text that is not JSON, with the key whose value could
// not be read; for a key that an object has twice; and for numbers beyond double.
nlohmann::json checked_json(const std::string& text, const std::string& where);

// The value of a word of a command line: JSON, or the word itself as a string.
nlohmann::json json_or_word(const std::string& word);

// Throws Error that begins with `where` if the text is not a JSON object.
nlohmann::json checked_json_object(const std::string& text, const std::string& where);

// A file of JSON. Throws Error that names the file if it is missing, malformed or too large.
nlohmann::json read_json(const std::filesystem::path& path);
void write_json(const std::filesystem::path& path, const nlohmann::json& json);

}  // namespace sextant
