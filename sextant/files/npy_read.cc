#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/base/unicode.h"
#include "sextant/files/npy.h"
#include "sextant/files/npy_header.h"
#include "sextant/files/read_file.h"

namespace sextant {
namespace {

using npy::Header;
using npy::Reader;

constexpr size_t kMaxTextLength = size_t{1} << 28;

// The number of elements of `width` bytes, which must fill the rest of the file exactly. The
// product of the axes is compared with the remaining bytes before each multiplication, so it cannot
// overflow.
size_t element_count(const Reader& in, const std::vector<int64_t>& shape, size_t width) {
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  const size_t most = in.left() / width;
  size_t count = empty ? 0 : 1;
  for (const int64_t axis : shape) {
    if (empty) break;
    if (static_cast<uint64_t>(axis) > most / count) {
      in.wrong("shape", "at most " + std::to_string(most) +
                            " elements, for which there are bytes, but got more");
    }
    count *= static_cast<size_t>(axis);
  }
  if (count * width != in.left()) {
    in.wrong("elements",
             std::to_string(count * width) + " bytes, but got " + std::to_string(in.left()));
  }
  return count;
}

// Enumerates the file positions of the elements in C order.
class Places {
 public:
  explicit Places(const Header& header) : shape_(header.shape), stride_(shape_.size(), 1) {
    const size_t axes = shape_.size();
    for (size_t step = 1; step < axes; ++step) {
      const size_t axis = header.fortran_order ? step : axes - 1 - step;
      const size_t inner = header.fortran_order ? axis - 1 : axis + 1;
      stride_[axis] = stride_[inner] * static_cast<size_t>(shape_[inner]);
    }
    index_.resize(axes);
  }

  size_t next() {
    const size_t place = place_;
    for (size_t axis = shape_.size(); axis-- > 0;) {
      place_ += stride_[axis];
      if (++index_[axis] < shape_[axis]) break;
      place_ -= stride_[axis] * static_cast<size_t>(shape_[axis]);
      index_[axis] = 0;
    }
    return place;
  }

 private:
  const std::vector<int64_t>& shape_;
  std::vector<size_t> stride_;
  std::vector<int64_t> index_;
  size_t place_ = 0;
};

std::string text_of(const Reader& in, std::span<const std::byte> bytes) {
  std::u32string codes(bytes.size() / 4, U'\0');
  std::memcpy(codes.data(), bytes.data(), bytes.size());
  codes.erase(codes.find_last_not_of(U'\0') + 1);  // short strings are padded with zeros
  std::string text;
  for (const char32_t code : codes) {
    if (!is_code_point(code)) {
      in.wrong("elements", "code points, but got " + std::to_string(uint32_t{code}));
    }
    append_utf8(text, code);
  }
  return text;
}

template <class T>
T element(const Reader& in, std::span<const std::byte> bytes) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text_of(in, bytes);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (bytes[0] > std::byte{1}) in.wrong("elements", "truths of 0 or 1, but got another");
    return bytes[0] == std::byte{1};
  } else {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
}

template <class T>
std::vector<T> take_elements(Reader& in, const Header& header, size_t width) {
  const size_t count = element_count(in, header.shape, width);
  const auto bytes = in.take(count * width, "elements");
  std::vector<T> elements(count);
  Places places(header);
  for (size_t i = 0; i < count; ++i) {
    elements[i] = element<T>(in, bytes.subspan(places.next() * width, width));
  }
  return elements;
}

// The width of a string, in bytes. Strings of length 0 are refused: they would allow a shape of any
// size without data.
size_t text_width(const Reader& in, const std::string& descr) {
  size_t length = 0;
  for (const char c : descr.substr(2)) {
    if (c < '0' || c > '9' || length > kMaxTextLength) {
      in.wrong("descr", "<U and a length up to 2^28, but got '" + descr + "'");
    }
    length = length * 10 + static_cast<size_t>(c - '0');
  }
  if (length == 0) in.wrong("descr", "<U and a length above 0, but got '" + descr + "'");
  return length * 4;
}

Elements take_all(Reader& in, const Header& header) {
  const std::string& descr = header.descr;
  if (descr == "<f8") return take_elements<double>(in, header, 8);
  if (descr == "<f4") return take_elements<float>(in, header, 4);
  if (descr == "<i8") return take_elements<int64_t>(in, header, 8);
  if (descr == "<i4") return take_elements<int32_t>(in, header, 4);
  if (descr == "<u8") return take_elements<uint64_t>(in, header, 8);
  if (descr == "|u1") return take_elements<uint8_t>(in, header, 1);
  if (descr == "|b1") return take_elements<bool>(in, header, 1);
  if (descr.starts_with("<U")) {
    return take_elements<std::string>(in, header, text_width(in, descr));
  }
  in.wrong("descr", "<f8, <f4, <i8, <i4, <u8, |u1, |b1 or <U, but got '" + descr + "'");
}

}  // namespace

Array parse_npy(std::span<const std::byte> bytes, std::string_view name) {
  Reader in(bytes, name);
  Header header = npy::take_header(in);
  Elements elements = take_all(in, header);
  return {std::move(header.shape), std::move(elements)};
}

Array read_npy(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  return parse_npy(std::as_bytes(std::span(bytes)), path.string());
}

}  // namespace sextant
