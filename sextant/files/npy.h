// NumPy's .npy, one array per file (NEP 1):
//
//   "\x93NUMPY" | major, minor | header length, 2 bytes in version 1, else 4 | header | elements
//
// All integers are little-endian; the header is a Python dict literal with 'descr', 'fortran_order'
// and 'shape'.
//
// The reader trusts nothing: every size is checked against the bytes available before anything is
// allocated. It does not support big-endian, complex, half and structured arrays, nor pickled
// objects, which would run code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sextant {

// The types b1, u1, i4, i8, u8, f4, f8 and U (UTF-8 here, UTF-32 in the file).
using Elements = std::variant<std::vector<bool>, std::vector<uint8_t>, std::vector<int32_t>,
                              std::vector<int64_t>, std::vector<uint64_t>, std::vector<float>,
                              std::vector<double>, std::vector<std::string>>;

struct Array {
  std::vector<int64_t> shape;  // empty: one element
  Elements elements;           // in C order (last axis fastest), whatever the order in the file

  friend bool operator==(const Array&, const Array&) = default;
};

// `name` is for messages only. Errors name the field and its byte.
Array parse_npy(std::span<const std::byte> bytes, std::string_view name);

// Writes in C order. Throws Error if the shape does not match the number of elements.
std::vector<std::byte> format_npy(const Array& array);

Array read_npy(const std::filesystem::path& path);
void write_npy(const std::filesystem::path& path, const Array& array);

}  // namespace sextant
