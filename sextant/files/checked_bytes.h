// Bytes of our own binary files, little-endian: put together, checked by CRC-32, and taken apart by
// a reader that trusts nothing. An error says "WHAT: field at byte N: expected ..., but got ...".
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace sextant {

static_assert(std::endian::native == std::endian::little);

// CRC-32 (ISO 3309) of `bytes` behind those that gave `so_far`; 0: none.
uint32_t crc32(uint32_t so_far, std::string_view bytes);

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes from the front what is known to be there. Views into `bytes`, which must outlive it.
class ByteReader {
 public:
  // what: begins every message, a literal. at: the byte of the file where `bytes` begin.
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
