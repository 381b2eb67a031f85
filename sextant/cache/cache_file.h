// A text of a KV cache (sextant/cache/kv_cache.h) as a file: a prompt that was read once, for later
// runs.
//
//   0   magic "SXTKVC01"
//   8   format: 1 float32, 2 bfloat16, 3 float16; and how many pairs keys are turned by or 2^32 - 1
//   where keys are plain: two uint32 16  key heads, key columns, value columns, rows: uint64 each
//   48  first position: int64
//   56  gain of the rotation: float64
//   64  CRC-32 of bytes 0 .. 63, and 4 bytes of 0
//   72  pairs: first and second column (uint32), speed in turns (two uint64), 24 bytes each
//       keys [heads, rows, columns], values: numbers of the format
//       CRC-32 of all from byte 72 on
//
// Little-endian. Pages are no part of it: a file fits any cache of the same heads, columns and
// format. The reader trusts
// nothing: sizes are compared with the bytes there are before anything is allocated, and an Error
// names the field and the byte where it stands.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "sextant/cache/kv_cache.h"

namespace sextant {

std::string cache_file(const KvCache& cache, int64_t sequence);

// The shape that a cache for this file needs, with page_rows as by default. Reads the header only.
KvCacheShape cache_file_shape(std::string_view file);

// Adds the file's text to a cache and returns its number. The cache is as it was if an Error is
// thrown.
int64_t add_cache_file(std::string_view file, KvCache& cache);

// The same to a file, which is there whole or as it was before (write_file.h), and from one.
void save_cache(const KvCache& cache, int64_t sequence, const std::filesystem::path& path);
int64_t load_cache(const std::filesystem::path& path, KvCache& cache);

}  // namespace sextant
