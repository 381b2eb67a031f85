// Facts on engines and configurations, from engines.json, each with the versions in which it was
// verified.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

// A sentence with its versions: "llama.cpp (read at 0c1e57098): truncate: ...". Throws Error if
// there is no fact with that id.
std::string engine_fact(std::string_view id);

}  // namespace sextant
