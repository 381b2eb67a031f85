// Decodes the images of charts by libpng.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::chart {

using Pixel = std::array<uint8_t, 4>;  // red, green, blue, opacity

struct Picture {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> bytes;
  Pixel pixel(int64_t x, int64_t y) const;
};

// Throws std::runtime_error if the bytes are not a PNG.
Picture read_png(std::string_view png);

// Throws std::runtime_error if the text is not base64 with complete padding.
std::string unbase64(std::string_view text);

}  // namespace sextant::chart
