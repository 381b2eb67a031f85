// A sequence of a KV cache (sextant/cache/kv_cache.h) as a file, so that later runs need not
// prefill a prompt again.
//
//   0   magic "SXTKVC01"
//   8   format: 1 float32, 2 bfloat16, 3 float16; 4 to 6: int8 with last pages of these: uint32
//   12  number of pairs by which keys are rotated, or 2^32 - 1 for unrotated keys: uint32
//   16  key heads, key columns, value columns, rows: uint64 each
//   48  first position: int64
//   56  gain of the rotation: float64
//   64  CRC-32 of bytes 0 .. 63, and 4 bytes of 0
//   72  pairs: first and second column (uint32), frequency in turns (two uint64), 24 bytes each
//       int8: page rows (uint64), then for each full page
//         scales of keys [heads, columns] (float32), keys [heads, page rows, columns] (int8),
//         scales of values [heads, page rows], values
//       keys [heads, other rows, columns], values: elements of the format
//       CRC-32 of all bytes from 72 on
//
// Rows of integers that are no full page, after truncate(), are written rounded to the format.
// All integers are little-endian. The file does not record pages, except those of int8: it fits any
// cache with the same heads, columns and format, and, if they are int8, the same page rows. The
// reader trusts nothing: sizes are compared with the bytes available before anything is allocated,
// and an Error names the field and its byte offset.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "sextant/base/export.h"
#include "sextant/cache/kv_cache.h"

namespace sextant {

SEXTANT_API std::string cache_file(const KvCache& cache, int64_t sequence);

// The cache shape that fits this file, with the default page_rows unless it is int8. Reads the
// header only.
SEXTANT_API KvCacheShape cache_file_shape(std::string_view file);

// Adds the file's sequence to a cache and returns its id. The cache is unchanged if an Error is
// thrown.
SEXTANT_API int64_t add_cache_file(std::string_view file, KvCache& cache);

// The same with files. A write either completes or leaves the previous file (write_file.h).
SEXTANT_API void save_cache(const KvCache& cache, int64_t sequence,
                            const std::filesystem::path& path);
SEXTANT_API int64_t load_cache(const std::filesystem::path& path, KvCache& cache);

}  // namespace sextant
