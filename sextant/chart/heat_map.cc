// The cells are averaged or repeated into a picture of palette indices, which is embedded as PNG;
// marks, labels and the colour bar are elements of SVG around it.
#include "sextant/chart/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sextant/base/error.h"
#include "sextant/chart/svg.h"
#include "sextant/chart/text.h"

namespace sextant::chart {
namespace {

constexpr double kTickSize = 11, kBarGap = 22, kBarWidth = 14;
constexpr int64_t kMostPixels = 2048;  // per side; more cells are averaged: no screen shows them
constexpr int64_t kFewPixels = 1024;   // smaller maps repeat cells: some viewers blur enlargements
constexpr size_t kLevels = 255;

void check_side(const Cells& cells, const char* side) {
  const auto refuse = [&](const char* field, const std::string& what) {
    fail(fmt::format("heat map: {}: {}: {}", side, field, what));
  };
  if (cells.count < 0) refuse("count", fmt::format("expected at least 0, but got {}", cells.count));
  if (!std::isfinite(cells.first) || !std::isfinite(cells.step) || cells.step == 0)
    refuse("step", fmt::format("expected a finite start and a finite step other than 0, but got "
                               "{} and {}",
                               cells.first, cells.step));
  if (!cells.names.empty() && static_cast<int64_t>(cells.names.size()) != cells.count)
    refuse("names",
           fmt::format("expected none or {}, but got {}", cells.count, cells.names.size()));
}

// Colour indices of the picture: averages of blocks of cells, or repeated cells.
struct Picture {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> indices;
};

struct Side {
  int64_t block = 1;   // cells per pixel
  int64_t repeat = 1;  // pixels per cell
  int64_t pixels = 0;

  explicit Side(int64_t count)
      : block((count + kMostPixels - 1) / kMostPixels),
        repeat(block > 1 ? 1 : std::max<int64_t>(1, (kFewPixels + count - 1) / count)),
        pixels((count + block - 1) / block * repeat) {}
};

double mean_of_block(const HeatMap& map, int64_t row, int64_t rows, int64_t column,
                     int64_t columns) {
  double sum = 0;
  int64_t seen = 0;
  for (int64_t r = row; r < std::min(row + rows, map.rows.count); ++r) {
    for (int64_t c = column; c < std::min(column + columns, map.columns.count); ++c) {
      const double value = map.values[static_cast<size_t>(r * map.columns.count + c)];
      if (!std::isfinite(value)) continue;
      sum += value;
      ++seen;
    }
  }
  return seen == 0 ? std::nan("") : sum / static_cast<double>(seen);
}

Picture picture(const HeatMap& map, Range range) {
  const Side across(map.columns.count), down(map.rows.count);
  Picture out = {across.pixels, down.pixels, {}};
  out.indices.reserve(static_cast<size_t>(out.width * out.height));
  for (int64_t row = 0; row < map.rows.count; row += down.block) {
    std::vector<uint8_t> line;
    for (int64_t column = 0; column < map.columns.count; column += across.block) {
      const double value = mean_of_block(map, row, down.block, column, across.block);
      const double t = std::clamp(fraction(map.value.scale, range, value), 0.0, 1.0);
      const uint8_t index =
          std::isnan(t) ? kTransparent : static_cast<uint8_t>(std::lround(t * (kLevels - 1)));
      line.insert(line.end(), static_cast<size_t>(across.repeat), index);
    }
    for (int64_t k = 0; k < down.repeat; ++k)
      out.indices.insert(out.indices.end(), line.begin(), line.end());
  }
  return out;
}

std::string image(const Box& box, const Picture& cells, Colours colours) {
  std::array<Colour, kLevels> palette;
  for (size_t i = 0; i < kLevels; ++i)
    palette[i] = colour(colours, static_cast<double>(i) / (kLevels - 1));
  const std::string png = encode_png({cells.width, cells.height, cells.indices, palette});
  return fmt::format(
      "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" "
      "style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>\n",
      pixels(box.left), pixels(box.top), pixels(box.width), pixels(box.height), base64(png));
}

std::string frame(const Box& box) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"edge\"/>\n",
                     pixels(box.left), pixels(box.top), pixels(box.width), pixels(box.height));
}

// A label along a side, as (cell, text): names, or round values that fall on a cell.
struct Mark {
  double cell = 0;
  std::string words;
};

std::vector<Mark> marks(const Cells& cells, double length, double spacing) {
  std::vector<Mark> out;
  int wanted = std::max(1, static_cast<int>(length / spacing));
  if (!cells.names.empty()) {
    for (int64_t i = 0; i < cells.count; ++i) {
      const std::string& name = cells.names[static_cast<size_t>(i)];
      if (!name.empty()) out.push_back({static_cast<double>(i), name});
    }
    const size_t every =
        (out.size() + static_cast<size_t>(wanted) - 1) / static_cast<size_t>(wanted);
    for (size_t n = 0; n * every < out.size(); ++n) out[n] = out[n * every];
    out.resize((out.size() + every - 1) / every);
    return out;
  }
  if (cells.count == 1) return {{0, pretty(cells.first, 7)}};
  wanted = static_cast<int>(std::min<int64_t>(wanted, cells.count - 1));  // no ticks between cells
  const double last = cells.first + cells.step * static_cast<double>(cells.count - 1);
  const Range range = {std::min(cells.first, last), std::max(cells.first, last)};
  for (const Tick& tick : ticks(Scale::kLinear, range, wanted)) {
    const double cell = (tick.value - cells.first) / cells.step;
    if (std::abs(cell - std::round(cell)) < 1e-6) out.push_back({std::round(cell), tick.label});
  }
  return out;
}

double widest(const std::vector<Mark>& marks) {
  double width = 0;
  for (const Mark& mark : marks) width = std::max(width, text_width(mark.words, kTickSize));
  return width;
}

Range value_range(const HeatMap& map) {
  Extent extent;
  for (const double value : map.values) {
    extent.add(value);
    if (map.colours == Colours::kDiverging) extent.add(-value);
  }
  return shown_range(map.value, extent, 0, "heat map: values");
}

// A pointed end of the colour bar, if there are values beyond it.
std::string beyond(const HeatMap& map, Range range, const Box& bar) {
  const auto any = [&](auto lies_beyond) {
    return std::any_of(map.values.begin(), map.values.end(),
                       [&](double v) { return std::isfinite(v) && lies_beyond(v); });
  };
  const auto arrow = [&](double t, double base, double tip) {
    const Colour c = colour(map.colours, t);
    return fmt::format("<path d=\"M{0} {2}L{1} {2}L{3} {4}z\" fill=\"#{5:02x}{6:02x}{7:02x}\"/>\n",
                       pixels(bar.left), pixels(bar.right()), pixels(base),
                       pixels(bar.left + bar.width / 2), pixels(tip), c.red, c.green, c.blue);
  };
  std::string out;
  if (any([&](double v) { return v > range.high; })) out += arrow(1, bar.top - 1, bar.top - 8);
  if (any([&](double v) { return v < range.low; }))
    out += arrow(0, bar.bottom() + 1, bar.bottom() + 8);
  return out;
}

std::string colour_bar(const HeatMap& map, Range range, const Box& bar) {
  Picture shades = {1, kLevels, {}};
  for (size_t i = kLevels; i-- > 0;) shades.indices.push_back(static_cast<uint8_t>(i));
  std::string out = image(bar, shades, map.colours) + frame(bar) + beyond(map, range, bar);
  for (const Tick& tick : ticks(map.value.scale, range, static_cast<int>(bar.height / 55))) {
    const double y = bar.bottom() - bar.height * fraction(map.value.scale, range, tick.value);
    out += line(bar.right(), y, bar.right() + 4, y, "edge");
    out += text(bar.right() + 7, y + 4, Anchor::kStart, "small", tick.label);
  }
  return out;
}

constexpr std::string_view kNoValue = "no value";

bool has_gaps(const HeatMap& map) {
  return std::any_of(map.values.begin(), map.values.end(),
                     [](double value) { return !std::isfinite(value); });
}

// The width from the map to the edge of the picture: gap, bar and its labels.
double bar_room(const HeatMap& map, Range range, double height) {
  double room = has_gaps(map) ? text_width(kNoValue, kTickSize) : 0;
  for (const Tick& tick : ticks(map.value.scale, range, static_cast<int>(height / 55)))
    room = std::max(room, text_width(tick.label, kTickSize));
  return kBarGap + kBarWidth + 16 + room;
}

std::string row_marks(const HeatMap& map, const Box& plot, const std::vector<Mark>& rows) {
  std::string out;
  for (const Mark& mark : rows) {
    const double y =
        plot.top + plot.height * (mark.cell + 0.5) / static_cast<double>(map.rows.count);
    out += line(plot.left - 4, y, plot.left, y, "edge");
    out += text(plot.left - 7, y + 4, Anchor::kEnd, "small",
                shortened(mark.words, kTickSize, plot.left - 9));
  }
  return out;
}

// Adds the column labels below the map, slanted if they would touch. Returns how far down they
// reach.
double column_marks(const HeatMap& map, const Box& plot, std::string& out) {
  const double pitch = plot.width / static_cast<double>(map.columns.count);
  std::vector<Mark> columns = marks(map.columns, plot.width, map.columns.names.empty() ? 60 : 18);
  bool slanted = false;
  double taken = -1e9, reach = 14;
  for (const Mark& mark : columns) {
    const double x = plot.left + pitch * (mark.cell + 0.5);
    const double half = text_width(mark.words, kTickSize) / 2;
    slanted = slanted || x - half < taken + 5;
    taken = x + half;
  }
  for (Mark& mark : columns) {
    const double x = plot.left + pitch * (mark.cell + 0.5);
    out += line(x, plot.bottom(), x, plot.bottom() + 4, "edge");
    if (!slanted) {
      out += text(x, plot.bottom() + 17, Anchor::kMiddle, "small", mark.words);
      continue;
    }
    mark.words = shortened(mark.words, kTickSize, std::min(140.0, (x - 4) * 1.3));
    out += fmt::format("<g transform=\"translate({} {}) rotate(-40)\">{}</g>\n", pixels(x + 3),
                       pixels(plot.bottom() + 14), text(0, 0, Anchor::kEnd, "small", mark.words));
    reach = std::max(reach, 10 + 0.64 * text_width(mark.words, kTickSize));
  }
  return reach;
}

}  // namespace

void check(const HeatMap& map) {
  check_side(map.rows, "rows");
  check_side(map.columns, "columns");
  const size_t cells = map.values.size(), columns = static_cast<size_t>(map.columns.count);
  const bool fits =
      columns == 0 ? cells == 0
                   : cells % columns == 0 && cells / columns == static_cast<size_t>(map.rows.count);
  if (!fits)
    fail(fmt::format("heat map: values: expected {} rows of {}, but got {}", map.rows.count,
                     map.columns.count, cells));
}

Drawing draw(const HeatMap& map, const Canvas& canvas) {
  check(map);
  const Range range = value_range(map);
  std::string body;
  double top = 8;
  if (canvas.heading) body += heading(map.title, map.subtitle, canvas.width, top);

  // Maps without square cells fill the canvas.
  const std::vector<Mark> rows =
      marks(map.rows, canvas.height * 0.75, map.rows.names.empty() ? 40 : 13);
  const std::string row_title = shortened(axis_title(map.y), kTickSize, canvas.width - 24);
  const std::string value = shortened(axis_title(map.value), kTickSize, canvas.width - 24);
  const double value_width = text_width(value, kTickSize);
  const bool both_fit =
      text_width(row_title, kTickSize) + value_width + 40 < canvas.width;  // in one row
  Box plot;
  plot.top = top + (both_fit ? 22 : 38);
  plot.left = std::max(22 + std::min(widest(rows), 0.35 * canvas.width), canvas.left);
  const double right = std::max(bar_room(map, range, canvas.height), canvas.right);
  plot.width = std::max(canvas.width - plot.left - right, 40.0);
  plot.height = std::max(canvas.height - plot.top - 44, 40.0);
  const bool square = map.rows.count == map.columns.count && canvas.square;
  if (square) plot.height = plot.width = std::min(plot.width, 440.0);
  const Box bar = {plot.right() + kBarGap, plot.top, kBarWidth, plot.height};

  const double row_title_up = both_fit ? 10 : 26;
  body += text(12, plot.top - row_title_up, Anchor::kStart, "small", row_title);
  body += text(std::min(bar.left, canvas.width - 6 - value_width), plot.top - 10, Anchor::kStart,
               "small", value);
  double reach = 14;
  if (map.values.empty()) {
    body += text(plot.left + plot.width / 2, plot.top + plot.height / 2, Anchor::kMiddle, "small",
                 "no values to show");
  } else {
    body += image(plot, picture(map, range), map.colours) + colour_bar(map, range, bar);
    body += row_marks(map, plot, rows);
    reach = column_marks(map, plot, body);
  }
  body += frame(plot);
  body += text(plot.left + plot.width / 2, plot.bottom() + reach + 21, Anchor::kMiddle, "small",
               axis_title(map.x));
  if (has_gaps(map)) {
    const Box key = {bar.left, plot.bottom() + 14, kBarWidth, 11};
    body += frame(key) + text(key.right() + 7, key.bottom() - 1, Anchor::kStart, "small", kNoValue);
  }
  const double height = plot.bottom() + reach + 30;
  return {canvas.width, static_cast<int>(std::ceil(height)), plot, std::move(body)};
}

}  // namespace sextant::chart
