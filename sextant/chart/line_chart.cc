#include "sextant/chart/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sextant/chart/labels.h"
#include "sextant/chart/looks.h"
#include "sextant/chart/strokes.h"
#include "sextant/chart/text.h"
#include "sextant/error.h"

namespace sextant::chart {
namespace {

constexpr double kLabelSpacing = 15, kLabelSize = 12, kTickSize = 11, kRowHeight = 16;
constexpr size_t kEveryPoint = 24;  // a series of so few points shows each of them
constexpr size_t kThinFrom = 300;  // points from which a line is drawn thinner, for it may be noisy
constexpr double kOverhang = 5;    // how far points at the border may reach out of the plot

void check(const Series& series) {
  const auto refuse = [&](const std::string& what) {
    fail("line chart: series \"" + series.name + "\": " + what);
  };
  const auto check_length = [&](const char* field, size_t length) {
    if (length != series.x.size()) {
      refuse(fmt::format("{}: expected as many values as x, {}, but got {}", field, series.x.size(),
                         length));
    }
  };
  check_length("y", series.y.size());
  if (!series.low.empty() || !series.high.empty()) {
    check_length("low", series.low.size());
    check_length("high", series.high.size());
  }
  for (size_t i = 0; i < series.x.size(); ++i) {
    if (!std::isfinite(series.x[i])) {
      refuse(fmt::format("x[{}]: expected a finite number, but got {}", i, series.x[i]));
    }
    if (i > 0 && series.x[i] < series.x[i - 1]) {
      refuse(fmt::format("x[{}]: expected at least {}, the value before it, but got {}", i,
                         series.x[i - 1], series.x[i]));
    }
  }
}

// The state of one drawing; its functions are in the order in which they run.
class Sketch {
 public:
  Sketch(const LineChart& chart, const Canvas& canvas) : chart_(chart), canvas_(canvas) {
    find_ranges();
    lay_out();
  }

  LineDrawing finish() {
    draw_axes();
    draw_markers();
    draw_lines();
    if (canvas_.end_labels) draw_end_labels();
    return {.drawing = {canvas_.width, height_, plot_, std::move(body_)},
            .x = x_,
            .y = y_,
            .strokes = std::move(strokes_)};
  }

 private:
  double place_x(double x) const {
    return plot_.left + plot_.width * fraction(chart_.x.scale, x_, x);
  }
  double place_y(double y) const {
    return plot_.bottom() - plot_.height * fraction(chart_.y.scale, y_, y);
  }

  void find_ranges() {
    Extent x, y;
    size_t points = 0;
    for (const Series& series : chart_.series) {
      check(series);
      points = std::max(points, series.x.size());
      for (const double value : series.x) x.add(value);
      for (const auto* values : {&series.y, &series.low, &series.high}) {
        for (const double value : *values) y.add(value);
      }
    }
    for (const Marker& marker : chart_.markers) x.add(marker.x);
    x_ = shown_range(chart_.x, x, points <= kEveryPoint ? 0.02 : 0, "line chart: x axis");
    y_ = shown_range(chart_.y, y, 0.05, "line chart: y axis");
  }

  // Margins as wide as their words; a chart of many series grows until its labels have room.
  void lay_out() {
    double top = 8;
    if (canvas_.heading) body_ += heading(chart_.title, chart_.subtitle, canvas_.width, top);

    double label_room = 14;
    if (canvas_.end_labels) {
      for (const Series& series : chart_.series) {
        label_room = std::max(label_room, 30 + text_width(end_label(series), kLabelSize) * 1.1);
      }
      label_room = std::min(label_room, 0.34 * canvas_.width);
    }
    const size_t labels = canvas_.end_labels ? chart_.series.size() : 0;

    plot_.top = top + 8;
    plot_.height =
        std::max(canvas_.height - plot_.top - 44, kLabelSpacing * static_cast<double>(labels));
    y_ticks_ = ticks(chart_.y.scale, y_, static_cast<int>(plot_.height / 55));
    double tick_room = 0;
    for (const Tick& tick : y_ticks_) {
      tick_room = std::max(tick_room, text_width(tick.label, kTickSize));
    }
    plot_.left = 20 + tick_room;
    plot_.width = std::max(canvas_.width - plot_.left - label_room, 40.0);

    place_above();  // needs the plot's sides, gives rows above it
    const double above = kRowHeight * static_cast<double>(rows_above_);
    plot_.top += above;
    plot_.height = std::max(plot_.height - above, kLabelSpacing * static_cast<double>(labels));
    height_ = static_cast<int>(std::ceil(plot_.bottom() + 44));
  }

  // The markers' names and the title of the y axis share rows above the plot, the nearest row first.
  // The markers come first, to stand at their lines.
  struct Above {
    double x = 0;
    size_t row = 0;
    std::string words;
  };
  void place_above() {
    struct Taken {
      size_t row;
      double left, right;
    };
    std::vector<Taken> taken;
    const auto put = [&](const std::string& words, double wish) {
      Above above = {wish, 0, shortened(words, kTickSize, canvas_.width - 24)};
      if (above.words.empty()) return above;
      const double width = text_width(above.words, kTickSize);
      above.x = std::clamp(wish, 12.0, std::max(12.0, canvas_.width - 4 - width));
      const auto is_taken = [&](const Taken& t) {
        return t.row == above.row && above.x < t.right + 10 && t.left < above.x + width + 10;
      };
      while (std::any_of(taken.begin(), taken.end(), is_taken)) ++above.row;
      taken.push_back({above.row, above.x, above.x + width});
      rows_above_ = std::max(rows_above_, above.row + 1);
      return above;
    };
    for (const Marker& marker : chart_.markers) {
      const double half = text_width(marker.label, kTickSize) / 2;
      marker_names_.push_back(put(marker.label, place_x(marker.x) - half));
    }
    y_title_ = put(axis_title(chart_.y), 12);
  }

  void draw_above(const Above& above) {
    if (above.words.empty()) return;
    body_ += text(above.x, plot_.top - 10 - kRowHeight * static_cast<double>(above.row),
                  Anchor::kStart, "small", above.words);
  }

  std::string tip(std::string_view words) const { return canvas_.hover ? hover(words) : ""; }

  void draw_axes() {
    for (const Tick& tick : y_ticks_) {
      const double y = place_y(tick.value);
      body_ += line(plot_.left, y, plot_.right(), y, "grid");
      body_ += text(plot_.left - 7, y + 4, Anchor::kEnd, "small", tick.label);
    }
    for (const Tick& tick : fitting_x_ticks()) {
      const double x = place_x(tick.value);
      body_ += line(x, plot_.bottom(), x, plot_.bottom() + 5, "edge");
      body_ += text(x, plot_.bottom() + 18, Anchor::kMiddle, "small", tick.label);
    }
    body_ += line(plot_.left, plot_.bottom(), plot_.right(), plot_.bottom(), "edge");
    body_ += text(plot_.left + plot_.width / 2, plot_.bottom() + 36, Anchor::kMiddle, "small",
                  axis_title(chart_.x));
    draw_above(y_title_);
  }

  // As many as stand side by side without touching.
  std::vector<Tick> fitting_x_ticks() const {
    for (int wanted = std::max(2, static_cast<int>(plot_.width / 70)); wanted > 1; --wanted) {
      std::vector<Tick> out = ticks(chart_.x.scale, x_, wanted);
      double taken = -1e9;
      bool fits = true;
      for (const Tick& tick : out) {
        const double half = text_width(tick.label, kTickSize) / 2;
        fits = fits && place_x(tick.value) - half > taken + 6;
        taken = place_x(tick.value) + half;
      }
      if (fits) return out;
    }
    return ticks(chart_.x.scale, x_, 1);
  }

  void draw_markers() {
    for (size_t i = 0; i < chart_.markers.size(); ++i) {
      const double x = place_x(chart_.markers[i].x);
      if (x < plot_.left - 0.5 || x > plot_.right() + 0.5) continue;
      body_ += "<g class=\"marked\">" + tip(chart_.markers[i].label) + "\n";
      body_ += line(x, plot_.top - 4, x, plot_.bottom(), "marker");
      draw_above(marker_names_[i]);
      body_ += "</g>\n";
    }
  }

  // Inside an <svg> of their own, which clips them. Bands lie under all lines.
  void draw_lines() {
    const Box clip = {plot_.left - kOverhang, plot_.top - kOverhang, plot_.width + 2 * kOverhang,
                      plot_.height + 2 * kOverhang};
    const std::string left = pixels(clip.left), top = pixels(clip.top);
    const std::string width = pixels(clip.width), height = pixels(clip.height);
    body_ += fmt::format(
        "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\">\n",
        left, top, width, height);
    std::string lines;
    bool any = false;
    for (size_t i = 0; i < chart_.series.size(); ++i) {
      const Series& series = chart_.series[i];
      strokes_.push_back(strokes(series.y, [&](size_t k) {
        return std::lround(std::clamp(place_x(series.x[k]), -1e6, 1e6));
      }));
      any = any || !strokes_[i].empty();
      if (!series.low.empty()) body_ += in_group(i, "", band(i));
      lines += in_group(i, tip(series.name), path(i) + points(i));
    }
    body_ += lines + "</svg>\n";
    if (!any) {
      body_ += text(plot_.left + plot_.width / 2, plot_.top + plot_.height / 2, Anchor::kMiddle,
                    "small", "no values to show");
    }
  }

  std::string in_group(size_t i, std::string_view title, std::string_view content) const {
    return fmt::format("<g class=\"series {}{}\" data-series=\"{}\">{}\n{}</g>\n", look(i).css,
                       chart_.series[i].emphasis ? " strong" : "", i, title, content);
  }

  std::string point(size_t i, size_t k) const {
    return pixels(place_x(chart_.series[i].x[k])) + " " +
           pixels(std::clamp(place_y(chart_.series[i].y[k]), -1e6, 1e6));
  }

  std::string path(size_t i) const {
    std::string d;
    for (const auto& stroke : strokes_[i]) {
      for (size_t n = 0; n < stroke.size(); ++n) {
        d += n == 0 ? 'M' : 'L';
        d += point(i, stroke[n]);
      }
    }
    if (d.empty()) return "";
    const std::string dashes = look(i).dashes;
    const bool thin = chart_.series[i].x.size() > kThinFrom;
    return fmt::format("<path class=\"line{}\"{} d=\"{}\"/>\n", thin ? " thin" : "",
                       dashes.empty() ? "" : " stroke-dasharray=\"" + dashes + "\"", d);
  }

  std::string band(size_t i) const {
    const Series& series = chart_.series[i];
    std::string d;
    for (const auto& stroke : strokes_[i]) {
      std::vector<std::string> there, back;
      for (const size_t k : stroke) {
        if (!std::isfinite(series.low[k]) || !std::isfinite(series.high[k])) continue;
        const std::string x = pixels(place_x(series.x[k])) + " ";
        there.push_back(x + pixels(std::clamp(place_y(series.high[k]), -1e6, 1e6)));
        back.push_back(x + pixels(std::clamp(place_y(series.low[k]), -1e6, 1e6)));
      }
      std::reverse(back.begin(), back.end());
      there.insert(there.end(), back.begin(), back.end());
      if (!there.empty()) d += fmt::format("M{}z", fmt::join(there, "L"));
    }
    return d.empty() ? d : "<path class=\"band\" d=\"" + d + "\"/>\n";
  }

  // Signs on the line: all of few points; of many some, at other places for each series; and every
  // point that stands alone, which has no line to be seen by.
  std::string points(size_t i) const {
    size_t total = 0;
    for (const auto& stroke : strokes_[i]) total += stroke.size();
    const size_t every = total <= kEveryPoint ? 1 : total / 6;
    const size_t start = total <= kEveryPoint ? 0 : every * (i % 5) / 5 + every / 10;
    std::string out;
    size_t n = 0;
    for (const auto& stroke : strokes_[i]) {
      for (const size_t k : stroke) {
        const bool chosen = n >= start && (n - start) % every == 0;
        ++n;
        if (chosen || stroke.size() == 1) out += sign(i, k);
      }
    }
    return out;
  }

  std::string sign(size_t i, size_t k) const {
    const Series& series = chart_.series[i];
    const double x = place_x(series.x[k]), y = place_y(series.y[k]);
    if (!(std::abs(x) < 1e6 && std::abs(y) < 1e6)) return "";  // out of sight
    return fmt::format(
        "<path class=\"point\" d=\"{}\">{}</path>\n", point_path(look(i).shape, x, y, 3.2),
        tip(fmt::format("{}\n{}: {}\n{}: {}", series.name, axis_title(chart_.x),
                        pretty(series.x[k], 7), axis_title(chart_.y), pretty(series.y[k]))));
  }

  // What the right end says, with room for an arrow.
  static std::string end_label(const Series& series) {
    const bool empty =
        std::none_of(series.y.begin(), series.y.end(), [](double y) { return std::isfinite(y); });
    if (series.name.empty()) return "";
    return series.name + (empty ? ": no values" : " ↑");
  }

  struct End {
    size_t series = 0;
    double x = 0, y = 0;  // where the line ends
    std::string words;
  };

  // The last point in sight, moved to the border with an arrow where it lies above or below.
  End end_of(size_t i) const {
    const Series& series = chart_.series[i];
    End end = {i, plot_.right(), plot_.bottom(), series.name};
    if (strokes_[i].empty()) {
      end.words += ": no values";
      return end;
    }
    size_t last = strokes_[i].front().front();
    for (const auto& stroke : strokes_[i]) {
      for (const size_t k : stroke) {
        if (series.x[k] <= x_.high) last = k;
      }
    }
    end.x = std::clamp(place_x(series.x[last]), plot_.left, plot_.right());
    const double y = place_y(series.y[last]);
    if (y < plot_.top - 0.5) end.words += " ↑";
    if (y > plot_.bottom() + 0.5) end.words += " ↓";
    end.y = std::clamp(y, plot_.top, plot_.bottom());
    return end;
  }

  void draw_end_labels() {
    std::vector<End> ends;
    std::vector<double> wanted;
    for (size_t i = 0; i < chart_.series.size(); ++i) {
      if (chart_.series[i].name.empty()) continue;
      ends.push_back(end_of(i));
      wanted.push_back(ends.back().y);
    }
    const std::vector<double> placed = spread(wanted, kLabelSpacing, plot_.top, plot_.bottom());
    const double x = plot_.right() + 24;
    for (size_t n = 0; n < ends.size(); ++n) {
      const End& end = ends[n];
      const bool any = !strokes_[end.series].empty();
      std::string label = tip(chart_.series[end.series].name) + "\n";
      if (any) {
        label += fmt::format("<path class=\"leader\" d=\"M{} {}L{} {}L{} {}\"/>\n",
                             pixels(end.x + 5), pixels(end.y), pixels(plot_.right() + 6),
                             pixels(end.y), pixels(x - 3), pixels(placed[n]));
      }
      label += text(x, placed[n] + 4, Anchor::kStart, any ? "label" : "small",
                    shortened(end.words, kLabelSize, canvas_.width - x - 2));
      body_ += in_group(end.series, "", label);
    }
  }

  const LineChart& chart_;
  const Canvas canvas_;
  Range x_, y_;
  Box plot_;
  int height_ = 0;
  size_t rows_above_ = 0;
  std::vector<Above> marker_names_;  // by marker
  Above y_title_;
  std::vector<Tick> y_ticks_;
  std::vector<std::vector<std::vector<size_t>>> strokes_;
  std::string body_;
};

}  // namespace

LineDrawing draw(const LineChart& chart, const Canvas& canvas) {
  return Sketch(chart, canvas).finish();
}

std::string svg(const LineChart& chart) {
  const Canvas canvas = {.width = chart.width, .height = chart.height};
  return document(draw(chart, canvas).drawing, chart.title, true);
}

}  // namespace sextant::chart
