// Compression to the gzip format (RFC 1952), which browsers and common tools decompress.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

// Equal inputs give equal outputs: the header has no time and no name.
std::string gzip(std::string_view bytes);

}  // namespace sextant
