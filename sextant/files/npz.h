// NumPy's .npz: a zip archive of .npy files, one per named array.
//
// Hostile archives cost no more than they weigh: entries are stored or deflated only, may not
// overlap, and claim no more bytes than deflate can pack (1032 to 1) and `max_bytes` allows in all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "sextant/files/npy.h"

namespace sextant {

using Arrays = std::map<std::string, Array>;

Arrays read_npz(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 32);

// Deflated. The file appears under its name when it is complete.
void write_npz(const std::filesystem::path& path, const Arrays& arrays);

}  // namespace sextant
