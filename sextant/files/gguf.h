// The header of a GGUF file (ggml's model format): metadata, and the offsets of tensors. This file
// also reads and writes whole files that hold metadata and small float32 tensors only.
//
// Layout, little-endian: "GGUF", u32 version (2 or 3), u64 tensors, u64 pairs; pairs of a string
// key, a u32 type and a value; tensors of a string name, u32 dimensions, u64 sizes, u32 type, u64
// offset; padding to general.alignment (32); data. Strings are a u64 length and bytes.
//
// The reader trusts nothing: every length is compared with the remaining bytes before anything is
// allocated, and an Error names the field and the byte.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "sextant/base/export.h"

namespace sextant {

struct GgufArray {
  // Of any numeric type; 1 and 0 for true and false. Empty for other types, for more than 65536
  // elements, as of a vocabulary, and once a file has 2^20 in all.
  std::vector<double> numbers;
  uint64_t count = 0;  // elements, of any type
};
// bool comes before the numeric types, so that a literal true does not become an integer.
using GgufValue = std::variant<bool, int64_t, uint64_t, double, std::string, GgufArray>;

struct GgufTensor {
  std::vector<uint64_t> sizes;
  uint32_t type = 0;    // 0: float32
  uint64_t offset = 0;  // from the start of the data
};

struct Gguf {
  std::map<std::string, GgufValue> metadata;
  std::map<std::string, GgufTensor> tensors;
  // Float32 tensors of one dimension and at most 65536 elements, if the bytes include them.
  std::map<std::string, std::vector<float>> vectors;
};

SEXTANT_API bool is_gguf(const std::string& bytes);

// Parses the first bytes of a file, which must include the whole header. Throws Error.
SEXTANT_API Gguf parse_gguf(const std::string& bytes);

// A file of version 3 with the given metadata (floating-point values as float32, integers as
// uint32, arrays as int32) and vectors.
SEXTANT_API std::string gguf_bytes(const std::map<std::string, GgufValue>& metadata,
                                   const std::map<std::string, std::vector<float>>& vectors);

}  // namespace sextant
