// Raster images: the cells of heat maps through libpng, whole pictures through librsvg.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sextant/chart/svg.h"

namespace sextant::chart {

// Palette entry 255 is transparent; the others are the palette's colours.
inline constexpr uint8_t kTransparent = 255;
struct Pixels {
  int64_t width = 0, height = 0;
  std::span<const uint8_t> indices;  // row-major, top row first
  std::span<const Colour> palette;   // up to 255
};

std::string encode_png(const Pixels& pixels);

// Renders an SVG document as PNG, with `zoom` pixels per SVG unit.
std::string rasterise(const std::string& svg, double zoom);

}  // namespace sextant::chart
