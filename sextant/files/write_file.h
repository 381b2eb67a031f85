// Atomic file writes: after a crash at any point a file is either complete or unchanged. All files
// are written here; tests/check_layers.py finds other ways.
//
// The new bytes are in NAME.sextant-XXXXXX until they are renamed to NAME. A killed process leaves
// such a file behind. The living owner of one holds its lock (flock), which ends with the process.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "sextant/base/error.h"

namespace sextant {

// A file could not be written, because the disk is full, the folder read-only, or a quota exceeded.
// Further writes will fail too, so a caller with more to write should stop and keep its results.
class CannotWrite : public Error {
 public:
  using Error::Error;
};

// Ends the names of temporary files, for mkstemp.
inline constexpr std::string_view kTemporarySuffix = ".sextant-XXXXXX";

// Writes a temporary file beside `path`, flushes it to the disk and renames it over `path`; creates
// missing parent folders. A file that is replaced passes on its mode, a symbolic link is followed,
// and bytes for a device or a pipe go into it. On failure throws CannotWrite, which names the file,
// and leaves the previous file unchanged.
void write_file(const std::filesystem::path& path, std::string_view bytes);

struct NewFile {
  std::filesystem::path path;
  std::string_view bytes;
};

// Writes files that belong together: none is renamed before the bytes of all are on the disk, so
// that a full disk leaves the previous files unchanged. The renames then happen one after the
// other.
void write_files(std::span<const NewFile> files);

// Copies a file in the same way.
void write_copy(const std::filesystem::path& from, const std::filesystem::path& to);

// Removes temporary files in `folder` that no living process owns. Errors are ignored.
void remove_leftovers(const std::filesystem::path& folder);

// Throws CannotWrite if no file can be created in the folder, or in its nearest existing parent.
// For long computations that write at the end.
void check_can_write(const std::filesystem::path& folder);

}  // namespace sextant
