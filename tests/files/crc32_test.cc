// The core's CRC-32 is zlib's.
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "sextant/files/checked_bytes.h"

namespace sextant {
namespace {

uint32_t of_zlib(uint32_t so_far, std::string_view bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(so_far, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string some_bytes(size_t count) {
  std::string bytes(count, 0);
  for (size_t n = 0; n < count; ++n) bytes[n] = static_cast<char>(n * n * 37 + n / 7);
  return bytes;
}

TEST(Crc32, HasTheCheckValueOfTheCatalogue) { EXPECT_EQ(crc32(0, "123456789"), 0xcbf43926U); }

TEST(Crc32, EqualsZlibForEveryLengthAndStart) {
  const std::string bytes = some_bytes(100);
  for (size_t first = 0; first < 9; ++first)
    for (size_t count = 0; first + count <= bytes.size(); ++count) {
      const std::string_view part = std::string_view(bytes).substr(first, count);
      EXPECT_EQ(crc32(0, part), of_zlib(0, part)) << first << " " << count;
    }
}

TEST(Crc32, ContinuesWhereItStopped) {
  const std::string bytes = some_bytes(10000);
  const std::string_view all = bytes;
  for (const size_t cut : {0, 1, 7, 8, 4097, 10000})
    EXPECT_EQ(crc32(crc32(0, all.substr(0, cut)), all.substr(cut)), of_zlib(0, all)) << cut;
}

}  // namespace
}  // namespace sextant
