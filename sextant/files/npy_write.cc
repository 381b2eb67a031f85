#include <algorithm>
#include <type_traits>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/base/unicode.h"
#include "sextant/files/npy.h"
#include "sextant/files/npy_header.h"
#include "sextant/files/write_file.h"

namespace sextant {
namespace {

class Writer {
 public:
  void put(std::string_view characters) { put(characters.data(), characters.size()); }
  void put(const void* data, size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), bytes, bytes + size);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

template <class T>
constexpr std::string_view descr_of() {
  if constexpr (std::is_same_v<T, bool>) return "|b1";
  if constexpr (std::is_same_v<T, uint8_t>) return "|u1";
  if constexpr (std::is_same_v<T, int32_t>) return "<i4";
  if constexpr (std::is_same_v<T, int64_t>) return "<i8";
  if constexpr (std::is_same_v<T, uint64_t>) return "<u8";
  if constexpr (std::is_same_v<T, float>) return "<f4";
  if constexpr (std::is_same_v<T, double>) return "<f8";
}

void put_header(Writer& out, std::string_view descr, const std::vector<int64_t>& shape) {
  std::string header = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
  for (const int64_t axis : shape) header += std::to_string(axis) + ",";
  header += "), }";
  constexpr size_t kBefore = 10;                            // magic, version, length
  header.append(63 - (kBefore + header.size()) % 64, ' ');  // elements start at a multiple of 64
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());  // 64 axes of 20 characters fit
  out.put(npy::kMagic);
  out.put(std::string_view("\1\0", 2));
  out.put(&length, sizeof length);
  out.put(header);
}

template <class T>
void put_array(Writer& out, const std::vector<int64_t>& shape, const std::vector<T>& elements) {
  put_header(out, descr_of<T>(), shape);
  if constexpr (std::is_same_v<T, bool>) {
    for (const bool truth : elements) out.put(std::string_view(truth ? "\1" : "\0", 1));
  } else {
    out.put(elements.data(), elements.size() * sizeof(T));
  }
}

// Strings are as wide as the longest one, and at least 1, as in NumPy.
void put_array(Writer& out, const std::vector<int64_t>& shape,
               const std::vector<std::string>& texts) {
  std::vector<std::u32string> rows;
  size_t width = 1;
  for (const std::string& text : texts) {
    rows.push_back(code_points(text));
    width = std::max(width, rows.back().size());
  }
  put_header(out, "<U" + std::to_string(width), shape);
  for (std::u32string& row : rows) {
    row.resize(width, U'\0');
    out.put(row.data(), width * sizeof(char32_t));
  }
}

void check_shape(const Array& array) {
  const size_t size = std::visit([](const auto& e) { return e.size(); }, array.elements);
  uint64_t count = 1;
  bool fits = array.shape.size() <= npy::kMaxAxes;
  for (const int64_t axis : array.shape) {
    fits = fits && axis >= 0 && !__builtin_mul_overflow(count, axis, &count);
  }
  if (!fits || count != size) {
    fail("npy: shape: expected axes whose product is " + std::to_string(size) +
         ", the number of elements, but got others");
  }
}

}  // namespace

std::vector<std::byte> format_npy(const Array& array) {
  check_shape(array);
  Writer out;
  std::visit([&](const auto& elements) { put_array(out, array.shape, elements); }, array.elements);
  return out.take();
}

void write_npy(const std::filesystem::path& path, const Array& array) {
  const std::vector<std::byte> bytes = format_npy(array);
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace sextant
