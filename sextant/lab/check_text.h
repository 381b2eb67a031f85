// Whether a file is text: a model that is trained on a picture or an archive learns nothing, and its
// losses look like results.
#pragma once

#include <string>
#include <string_view>

namespace sextant::lab {

// Throws Error that names the file and the offset of the first bad byte if one byte in a thousand is
// NUL, or one in ten is not UTF-8. Text with a few broken characters passes, and so does a European
// one in Latin-1.
void check_text(std::string_view bytes, const std::string& file);

}  // namespace sextant::lab
