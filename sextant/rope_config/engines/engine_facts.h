// Facts on engines and settings, from engines.json, each with the versions that it was read in.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

// A sentence with its versions: "llama.cpp (read at 0c1e57098): truncate: ...". Throws Error if
// there is no fact of that id.
std::string engine_fact(std::string_view id);

}  // namespace sextant
