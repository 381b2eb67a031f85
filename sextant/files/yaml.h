// The reader of YAML that comes from outside, by libyaml. Only the command links it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace sextant {

// A document as JSON whose scalars are all strings, as they are written, and an absent one null;
// several documents as a list. Aliases and merge keys (<<) are replaced by what they stand for.
// Throws Error that begins with `where` and names the line for text that is not YAML, a key that is
// not a scalar, a key twice in a mapping, and more values, bytes or levels than files that
// people write have.
nlohmann::json read_yaml(const std::string& text, const std::string& where);

}  // namespace sextant
