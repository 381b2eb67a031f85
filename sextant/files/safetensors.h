// The safetensors container: named numeric arrays, without code.
//
//   8 bytes  length of the header, little-endian
//   header   JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//                   "__metadata__": {"key": "text"}}, padded with spaces
//   data     the arrays, little-endian, row-major; offsets count from here
//
// The reader trusts nothing: lengths are checked against the bytes available before anything is
// allocated, products are checked for overflow before use, arrays must cover the data without gap
// or overlap, and every error names the field and, where there is one, the tensor. This file does
// not use libtorch's tensors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

struct TensorBytes {
  std::string name;
  std::string dtype;  // as in the format: "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;
  std::string_view bytes;  // does not own
};

struct Safetensors {
  std::vector<TensorBytes> tensors = {};  // in the order of their data
  std::map<std::string, std::string> metadata = {};
};

// Returns views into `file`, which must outlive them. Throws Error.
Safetensors parse_safetensors(std::string_view file);

// Returns the bytes of the whole file. Throws Error if a tensor's bytes do not fit its shape, or if
// a name is not allowed or given twice.
std::string safetensors_file(const Safetensors& content);

}  // namespace sextant
