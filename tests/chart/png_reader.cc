#include "tests/chart/png_reader.h"

#include <png.h>

#include <stdexcept>

namespace sextant::chart {

Pixel Picture::pixel(int64_t x, int64_t y) const {
  const auto at = static_cast<size_t>(4 * (y * width + x));
  return {bytes.at(at), bytes.at(at + 1), bytes.at(at + 2), bytes.at(at + 3)};
}

Picture read_png(std::string_view png) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  if (!png_image_begin_read_from_memory(&image, png.data(), png.size())) {
    throw std::runtime_error(image.message);
  }
  image.format = PNG_FORMAT_RGBA;
  Picture out = {image.width, image.height, std::vector<uint8_t>(PNG_IMAGE_SIZE(image))};
  if (!png_image_finish_read(&image, nullptr, out.bytes.data(), 0, nullptr)) {
    throw std::runtime_error(image.message);
  }
  return out;
}

std::string unbase64(std::string_view text) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) throw std::runtime_error("base64: not a multiple of 4");
  std::string out;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    size_t padding = 0;
    for (size_t k = 0; k < 4; ++k) {
      const bool pad = text[i + k] == '=' && i + 4 == text.size() && k >= 2;
      const size_t value = pad ? 0 : kAlphabet.find(text[i + k]);
      if (value == std::string_view::npos) throw std::runtime_error("base64: no such letter");
      padding += pad ? 1 : 0;
      group = group << 6 | static_cast<uint32_t>(value);
    }
    for (size_t k = 0; k < 3 - padding; ++k) out += static_cast<char>(group >> (16 - 8 * k) & 255);
  }
  return out;
}

}  // namespace sextant::chart
