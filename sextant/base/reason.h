// The reason of an exception in Sextant's words. Libraries have texts that mean nothing to a user:
// "std::bad_alloc", "filesystem error: ...", "[json.exception.type_error.302] ...".
#pragma once

#include <exception>
#include <string>

namespace sextant {

// An Error's own message; of other exceptions a sentence without the library's words.
std::string reason_of(const std::exception& error);

}  // namespace sextant
