// Bytes made small as gzip (RFC 1952) has it: browsers and everybody's tools take them apart again.
#pragma once

#include <string>
#include <string_view>

namespace sextant {

// The same bytes for the same bytes: no time and no name in its head.
std::string gzip(std::string_view bytes);

}  // namespace sextant
