// CRC-32 (ISO 3309, the polynomial of zip and PNG) by "slicing-by-8" (Kounavis and Berry 2005): a
// step reads eight bytes and looks each up in the table of its place, so that the core needs no
// zlib.
#include "sextant/files/checked_bytes.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "sextant/base/error.h"

namespace sextant {
namespace {

constexpr uint32_t kPolynomial = 0xedb88320;  // reflected: the lowest bit comes first
constexpr size_t kBytesAtOnce = 8;

// table[n][x] is the remainder of byte x that n more bytes follow.
using Tables = std::array<std::array<uint32_t, 256>, kBytesAtOnce>;

constexpr Tables make_tables() {
  Tables table{};
  for (uint32_t x = 0; x < 256; ++x) {
    uint32_t remainder = x;
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? kPolynomial : 0);
    table[0][x] = remainder;
  }
  for (size_t n = 1; n < kBytesAtOnce; ++n)
    for (size_t x = 0; x < 256; ++x)
      table[n][x] = (table[n - 1][x] >> 8) ^ table[0][table[n - 1][x] & 0xff];
  return table;
}

constexpr Tables kTables = make_tables();

}  // namespace

void ByteReader::wrong(const char* field, uint64_t at, const std::string& expected) const {
  fail(std::string(what_) + ": " + field + " at byte " + std::to_string(at) + ": expected " +
       expected);
}

std::string_view ByteReader::take(const char* field, uint64_t count) {
  if (count > left())
    wrong(field, at_, std::to_string(count) + " bytes, but got " + std::to_string(left()));
  const std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  at_ += count;
  return taken;
}

void ByteReader::expect_text(const char* field, std::string_view expected) {
  const uint64_t at = at_;
  if (take(field, expected.size()) != expected) wrong(field, at, std::string(expected));
}

uint32_t crc32(uint32_t so_far, std::string_view bytes) {
  uint32_t remainder = ~so_far;
  for (; bytes.size() >= kBytesAtOnce; bytes.remove_prefix(kBytesAtOnce)) {
    uint64_t next = 0;
    std::memcpy(&next, bytes.data(), sizeof next);
    next ^= remainder;
    remainder = 0;
    for (size_t n = 0; n < kBytesAtOnce; ++n)
      remainder ^= kTables[kBytesAtOnce - 1 - n][(next >> (8 * n)) & 0xff];
  }
  for (const char byte : bytes)
    remainder =
        (remainder >> 8) ^ kTables[0][(remainder ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~remainder;
}

}  // namespace sextant
