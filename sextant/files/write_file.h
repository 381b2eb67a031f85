// Files that are there whole or not at all, whatever dies in between.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "sextant/base/error.h"

namespace sextant {

// A file could not be written: the disk is full, the folder read-only, a quota spent. What else
// there is to write will fare no better, so whoever has more to do stops and keeps what is done.
class CannotWrite : public Error {
 public:
  using Error::Error;
};

// Writes a temporary file beside `path`, flushes it to the disk and renames it over `path`; makes
// the folders above. Throws CannotWrite, which names the file, and leaves what was there before.
void write_file(const std::filesystem::path& path, std::string_view bytes);

struct NewFile {
  std::filesystem::path path;
  std::string_view bytes;
};

// Files that belong together: no name changes its file before the bytes of all are on the disk, so
// that a full one leaves what was there before. The names then change one after the other.
void write_files(std::span<const NewFile> files);

// Throws CannotWrite if no file can be made in the folder, or in the nearest one above that exists.
// For what takes long before it has something to write.
void check_can_write(const std::filesystem::path& folder);

}  // namespace sextant
