// Ranges come first, then the margins that texts need, then ticks, and last the places of the
// labels at the ends, which are moved apart.
#include "sextant/chart/line_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sextant/base/error.h"
#include "sextant/chart/text.h"

namespace sextant::chart {
namespace {

constexpr double kRowHeight = 16;  // of the text above the plot
constexpr double kBelow = 44;      // for the x axis' ticks and title

void check(const Series& series) {
  const auto refuse = [&](const std::string& what) {
    fail("line chart: series \"" + series.name + "\": " + what);
  };
  const auto check_length = [&](const char* field, size_t length) {
    if (length != series.x.size())
      refuse(fmt::format("{}: expected as many values as x, {}, but got {}", field, series.x.size(),
                         length));
  };
  check_length("y", series.y.size());
  if (!series.low.empty() || !series.high.empty()) {
    check_length("low", series.low.size());
    check_length("high", series.high.size());
  }
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!std::isfinite(series.x[i]))
      refuse(fmt::format("x[{}]: expected a finite number, but got {}", i, series.x[i]));
    if (i > 0 && series.x[i] < series.x[i - 1])
      refuse(fmt::format("x[{}]: expected at least {}, the value before it, but got {}", i,
                         series.x[i - 1], series.x[i]));
  }
}

void check(const Marker& marker) {
  if (!std::isfinite(marker.x))
    fail(fmt::format("line chart: marker \"{}\": x: expected a finite number, but got {}",
                     marker.label, marker.x));
}

void find_ranges(const LineChart& chart, LineLayout& layout) {
  Extent x, y;
  size_t points = 0;
  for (const Series& series : chart.series) {
    check(series);
    points = std::max(points, series.x.size());
    for (const double value : series.x) x.add(value);
    for (const auto* values : {&series.y, &series.low, &series.high}) {
      for (const double value : *values) y.add(value);
    }
  }
  for (const Marker& marker : chart.markers) {
    check(marker);
    x.add(marker.x);
  }
  layout.x_scale = chart.x.scale;
  layout.y_scale = chart.y.scale;
  layout.x = shown_range(chart.x, x, points <= kEveryPoint ? 0.02 : 0, "line chart: x axis");
  layout.y = shown_range(chart.y, y, 0.05, "line chart: y axis");
}

double tick_room(const std::vector<Tick>& ticks) {
  double room = 0;
  for (const Tick& tick : ticks) room = std::max(room, text_width(tick.label, kTickSize));
  return room;
}

// The room for the longest label at the end of a line, including a possible suffix; limited to a
// part of the canvas.
double label_room(const LineChart& chart, const Canvas& canvas) {
  double room = 14;
  if (!canvas.end_labels) return room;
  constexpr double kBold = 1.1;
  for (const Series& series : chart.series) {
    const bool any =
        std::any_of(series.y.begin(), series.y.end(), [](double y) { return std::isfinite(y); });
    if (series.name.empty()) continue;
    const std::string words = series.name + (any ? " ↑" : ": no values");
    room = std::max(room, 30 + kBold * text_width(words, kLabelSize));
  }
  return std::min(room, 0.34 * canvas.width);
}

// Places texts side by side in rows above the plot, nearest row first.
class Rows {
 public:
  explicit Rows(double width) : width_(width) {}

  // Puts the text in the first row where it fits with its left end at `wish`, or as near as the
  // picture's borders allow. y of the result is the distance above the plot.
  LineLayout::Words put(const std::string& words, double wish) {
    LineLayout::Words out = {wish, 0, shortened(words, kTickSize, width_ - 24)};
    if (out.words.empty()) return out;
    const double width = text_width(out.words, kTickSize);
    out.x = std::clamp(wish, 12.0, std::max(12.0, width_ - 4 - width));
    size_t row = 0;
    const auto is_taken = [&](const Taken& t) {
      return t.row == row && out.x < t.right + 10 && t.left < out.x + width + 10;
    };
    while (std::any_of(taken_.begin(), taken_.end(), is_taken)) ++row;
    taken_.push_back({row, out.x, out.x + width});
    rows_ = std::max(rows_, row + 1);
    out.y = 10 + kRowHeight * static_cast<double>(row);
    return out;
  }
  double height() const { return kRowHeight * static_cast<double>(rows_); }

 private:
  struct Taken {
    size_t row;
    double left, right;
  };
  double width_;
  std::vector<Taken> taken_;
  size_t rows_ = 0;
};

// The markers' names come first, so that they are at their lines; then the title of the y axis.
void put_words_above(const LineChart& chart, double width, double room, LineLayout& layout) {
  Rows rows(width);
  for (const Marker& marker : chart.markers) {
    const double half = text_width(marker.label, kTickSize) / 2;
    layout.marker_names.push_back(rows.put(marker.label, layout.place_x(marker.x) - half));
  }
  layout.y_title = rows.put(axis_title(chart.y), 12);
  layout.plot.top += rows.height();
  layout.plot.height = std::max(layout.plot.height - rows.height(), room);
  for (auto& name : layout.marker_names) name.y = layout.plot.top - name.y;
  layout.y_title.y = layout.plot.top - layout.y_title.y;
}

// As many ticks as fit side by side without touching.
std::vector<Tick> fitting_x_ticks(const LineLayout& layout) {
  for (int wanted = std::max(2, static_cast<int>(layout.plot.width / 70)); wanted > 1; --wanted) {
    std::vector<Tick> out = ticks(layout.x_scale, layout.x, wanted);
    double taken = -1e9;
    bool fits = true;
    for (const Tick& tick : out) {
      const double half = text_width(tick.label, kTickSize) / 2;
      fits = fits && layout.place_x(tick.value) - half > taken + 6;
      taken = layout.place_x(tick.value) + half;
    }
    if (fits) return out;
  }
  return ticks(layout.x_scale, layout.x, 1);
}

// A block of touching labels. The mean of their preferred places gives the place of its first
// label.
struct LabelBlock {
  double sum = 0;  // of preferred places, each moved up by the labels before it in the block
  size_t count = 0;
  double place(double low, double high, double spacing) const {
    const double last = high - spacing * static_cast<double>(count - 1);
    return std::clamp(sum / static_cast<double>(count), low, std::max(low, last));
  }
};

// Appends the points of first .. last that are kept; they share a column.
void keep(std::span<const double> y, size_t first, size_t last, std::vector<size_t>& out) {
  size_t least = first, greatest = first;
  for (size_t i = first; i <= last; ++i) {
    if (y[i] < y[least]) least = i;
    if (y[i] > y[greatest]) greatest = i;
  }
  for (const size_t i : {first, std::min(least, greatest), std::max(least, greatest), last})
    if (out.empty() || out.back() < i) out.push_back(i);
}

}  // namespace

LineLayout lay_out(const LineChart& chart, const Canvas& canvas) {
  LineLayout layout;
  find_ranges(chart, layout);
  double top = 8;
  if (canvas.heading) layout.heading = heading(chart.title, chart.subtitle, canvas.width, top);
  const size_t labels = canvas.end_labels ? chart.series.size() : 0;
  const double room = kLabelSpacing * static_cast<double>(labels);

  Box& plot = layout.plot;
  plot.top = top + 8;
  plot.height = std::max(canvas.height - plot.top - kBelow, room);
  layout.y_ticks = ticks(layout.y_scale, layout.y, static_cast<int>(plot.height / 55));
  plot.left = std::max(20 + tick_room(layout.y_ticks), canvas.left);
  const double right = std::max(label_room(chart, canvas), canvas.right);
  plot.width = std::max(canvas.width - plot.left - right, 40.0);
  put_words_above(chart, canvas.width, room, layout);
  layout.x_ticks = fitting_x_ticks(layout);
  layout.height = static_cast<int>(std::ceil(plot.bottom() + kBelow));
  return layout;
}

// Pooling adjacent violators (Ayer et al. 1955): isotonic regression of wanted[i] - i * spacing.
std::vector<double> spread_out(std::span<const double> wanted, double spacing, double low,
                               double high) {
  const size_t n = wanted.size();
  if (n > 1) spacing = std::min(spacing, (high - low) / static_cast<double>(n - 1));
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });

  std::vector<LabelBlock> blocks;
  for (const size_t i : order) {
    blocks.push_back({wanted[i], 1});
    while (blocks.size() > 1) {
      const LabelBlock last = blocks.back();
      LabelBlock& before = blocks[blocks.size() - 2];
      const double end =
          before.place(low, high, spacing) + spacing * static_cast<double>(before.count);
      if (last.place(low, high, spacing) >= end) break;
      before.sum += last.sum - spacing * static_cast<double>(before.count * last.count);
      before.count += last.count;
      blocks.pop_back();
    }
  }

  std::vector<double> out(n);
  size_t next = 0;
  for (const LabelBlock& block : blocks) {
    double place = block.place(low, high, spacing);
    for (size_t k = 0; k < block.count; ++k, place += spacing) out[order[next++]] = place;
  }
  return out;
}

std::vector<std::vector<size_t>> strokes(std::span<const double> y,
                                         const std::function<long(size_t)>& column) {
  std::vector<std::vector<size_t>> out;
  bool drawing = false;
  for (size_t i = 0; i < y.size();) {
    if (!std::isfinite(y[i])) {
      drawing = false;
      ++i;
      continue;
    }
    if (!drawing) out.emplace_back();
    drawing = true;
    size_t last = i;
    while (last + 1 < y.size() && std::isfinite(y[last + 1]) && column(last + 1) == column(i))
      ++last;
    keep(y, i, last, out.back());
    i = last + 1;
  }
  return out;
}

}  // namespace sextant::chart
