// NumPy's .npz: a zip archive of .npy files, one per named array.
//
// A malicious archive cannot cost more than its size allows: entries must be stored or deflated,
// may not overlap, and may not claim more bytes than deflate can pack (1032 to 1) or than
// `max_bytes` in total.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "sextant/files/npy.h"

namespace sextant {

using Arrays = std::map<std::string, Array>;

Arrays read_npz(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 32);

// Writes a deflated archive. The file appears under its name when it is complete.
void write_npz(const std::filesystem::path& path, const Arrays& arrays);

}  // namespace sextant
