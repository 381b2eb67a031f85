#include "sextant/lab/data/check_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

constexpr size_t kTextPerNul = 1000;
constexpr size_t kTextPerBroken = 10;

// Count of invalid bytes and offset of the first one.
struct Found {
  size_t count = 0, first = 0;
  void add(size_t offset) {
    if (count++ == 0) first = offset;
  }
};

// Counts the ASCII bytes other than NUL from `at` on, eight at a time for speed.
size_t plain_bytes(std::string_view bytes, size_t at) {
  constexpr uint64_t kHigh = 0x8080808080808080, kLow = 0x0101010101010101;
  const size_t begin = at;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, bytes.data() + at, 8);
    if (((eight | (eight - kLow)) & kHigh) != 0) break;  // some byte is non-ASCII or NUL
  }
  const auto is_plain = [](char c) { return static_cast<signed char>(c) > 0; };
  while (at < bytes.size() && is_plain(bytes[at])) ++at;
  return at - begin;
}

// Length of the UTF-8 encoding of a code point that starts at `at` with a byte above 0x7f; 0 if
// invalid.
size_t character_length(std::string_view bytes, size_t at) {
  const auto byte = [&](size_t n) {
    return at + n < bytes.size() ? static_cast<unsigned char>(bytes[at + n]) : 0U;
  };
  const auto continues = [&](size_t n) { return (byte(n) & 0xc0U) == 0x80U; };
  const unsigned lead = byte(0), next = byte(1);
  if (lead < 0xc2 || lead > 0xf4 || !continues(1)) return 0;
  if (lead < 0xe0) return 2;
  // Overlong encodings, surrogates and code points above 0x10ffff are not UTF-8.
  const bool out_of_range = (lead == 0xe0 && next < 0xa0) || (lead == 0xed && next >= 0xa0) ||
                            (lead == 0xf0 && next < 0x90) || (lead == 0xf4 && next >= 0x90);
  if (out_of_range || !continues(2)) return 0;
  if (lead < 0xf0) return 3;
  return continues(3) ? 4 : 0;
}

std::string hint(std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b")) return ": it is compressed by gzip; unpack it first";
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) {
    return ": it begins as UTF-16 does; convert it to UTF-8";
  }
  return "";
}

}  // namespace

void check_text(std::string_view bytes, const std::string& file) {
  Found nul, broken;
  for (size_t at = 0; at < bytes.size();) {
    at += plain_bytes(bytes, at);
    if (at == bytes.size()) break;
    const size_t length = bytes[at] == '\0' ? 0 : character_length(bytes, at);
    if (length == 0) (bytes[at] == '\0' ? nul : broken).add(at);
    at += length == 0 ? 1 : length;
  }
  const bool binary = nul.count > bytes.size() / kTextPerNul;
  if (!binary && broken.count <= bytes.size() / kTextPerBroken) return;
  const Found& found = binary ? nul : broken;
  fail(fmt::format(
      "{}: expected text in UTF-8, but got a file of {} bytes of which {} are {}, the "
      "first at offset {}{}",
      file, bytes.size(), found.count, binary ? "NUL" : "not UTF-8", found.first, hint(bytes)));
}

}  // namespace sextant::lab
