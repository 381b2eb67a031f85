// Rejects files that are not text: a model trained on an image or an archive learns nothing, but
// its losses look like results.
#pragma once

#include <string>
#include <string_view>

namespace sextant::lab {

// Throws Error that names the file and the offset of the first bad byte if more than one byte in a
// thousand is NUL, or more than one in ten is not UTF-8. Text with a few invalid bytes passes, and
// so does Western European text in Latin-1.
void check_text(std::string_view bytes, const std::string& file);

}  // namespace sextant::lab
