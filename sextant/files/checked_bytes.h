// Reads and writes Sextant's own binary files, little-endian and protected by CRC-32. The reader
// trusts nothing. An error says "WHAT: field at byte N: expected ..., but got ...".
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace sextant {

static_assert(std::endian::native == std::endian::little);

// Continues the CRC-32 (ISO 3309) `so_far` over `bytes`; 0 starts a new one.
uint32_t crc32(uint32_t so_far, std::string_view bytes);

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Reads fields from the front, each after a check of its length. Returned views point into `bytes`,
// which must outlive them.
class ByteReader {
 public:
  // what: a literal that begins every message. at: the file offset of the first byte of `bytes`.
  ByteReader(const char* what, std::string_view bytes, uint64_t at = 0)
      : what_(what), bytes_(bytes), at_(at) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size(); }

  [[noreturn]] void wrong(const char* field, uint64_t at, const std::string& expected) const;

  std::string_view take(const char* field, uint64_t count);

  template <class T>
  T number(const char* field) {
    T value;
    std::memcpy(&value, take(field, sizeof value).data(), sizeof value);
    return value;
  }

  template <class T>
  T between(const char* field, T low, T high) {
    const uint64_t at = at_;
    const T got = number<T>(field);
    if (got < low || got > high)
      wrong(
          field, at,
          std::to_string(low) + " to " + std::to_string(high) + ", but got " + std::to_string(got));
    return got;
  }

  template <class T>
  void expect(const char* field, T expected) {
    const uint64_t at = at_;
    const T got = number<T>(field);
    if (got != expected)
      wrong(field, at, std::to_string(expected) + ", but got " + std::to_string(got));
  }

  void expect_text(const char* field, std::string_view expected);

 private:
  const char* what_;
  std::string_view bytes_;
  uint64_t at_;
};

}  // namespace sextant
