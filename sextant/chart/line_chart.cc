// Sketch draws what line_layout.h has placed: grid, bands, lines, points and the labels at the ends
// of the lines.
#include "sextant/chart/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sextant/chart/line_layout.h"
#include "sextant/chart/text.h"

namespace sextant::chart {
namespace {

constexpr size_t kThinFrom = 300;  // from this many points a line is thinner, as it may be noisy
constexpr double kOverhang = 5;    // pixels by which border points may extend beyond the plot

// The state of one drawing; its functions are in the order in which they run.
class Sketch {
 public:
  Sketch(const LineChart& chart, const Canvas& canvas)
      : chart_(chart),
        canvas_(canvas),
        layout_(lay_out(chart, canvas)),
        plot_(layout_.plot),
        body_(layout_.heading) {}

  LineDrawing finish() {
    draw_axes();
    draw_markers();
    draw_lines();
    if (canvas_.end_labels) draw_end_labels();
    return {.drawing = {canvas_.width, layout_.height, plot_, std::move(body_)},
            .x = layout_.x,
            .y = layout_.y,
            .strokes = std::move(strokes_)};
  }

 private:
  double place_x(double x) const { return layout_.place_x(x); }
  double place_y(double y) const { return layout_.place_y(y); }
  std::string tip(std::string_view words) const { return canvas_.hover ? hover(words) : ""; }

  void draw_words(const LineLayout::Words& words) {
    if (!words.words.empty()) body_ += text(words.x, words.y, Anchor::kStart, "small", words.words);
  }

  void draw_axes() {
    for (const Tick& tick : layout_.y_ticks) {
      const double y = place_y(tick.value);
      body_ += line(plot_.left, y, plot_.right(), y, "grid");
      body_ += text(plot_.left - 7, y + 4, Anchor::kEnd, "small", tick.label);
    }
    for (const Tick& tick : layout_.x_ticks) {
      const double x = place_x(tick.value);
      body_ += line(x, plot_.bottom(), x, plot_.bottom() + 5, "edge");
      body_ += text(x, plot_.bottom() + 18, Anchor::kMiddle, "small", tick.label);
    }
    body_ += line(plot_.left, plot_.bottom(), plot_.right(), plot_.bottom(), "edge");
    body_ += text(plot_.left + plot_.width / 2, plot_.bottom() + 36, Anchor::kMiddle, "small",
                  axis_title(chart_.x));
    draw_words(layout_.y_title);
  }

  void draw_markers() {
    for (size_t i = 0; i < chart_.markers.size(); ++i) {
      const double x = place_x(chart_.markers[i].x);
      if (x < plot_.left - 0.5 || x > plot_.right() + 0.5) continue;
      body_ += "<g class=\"marked\">" + tip(chart_.markers[i].label) + "\n";
      body_ += line(x, plot_.top - 4, x, plot_.bottom(), "marker");
      draw_words(layout_.marker_names[i]);
      body_ += "</g>\n";
    }
  }

  // Draws the lines inside a nested <svg>, which clips them. Bands lie under all lines.
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
    if (!any)
      body_ += text(plot_.left + plot_.width / 2, plot_.top + plot_.height / 2, Anchor::kMiddle,
                    "small", "no values to show");
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

  // Point markers on the line: all points if there are few; otherwise some, at different places for
  // each series; and every isolated point, which has no visible line.
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
    if (!(std::abs(x) < 1e6 && std::abs(y) < 1e6)) return "";  // far outside the picture
    return fmt::format(
        "<path class=\"point\" d=\"{}\">{}</path>\n", point_path(look(i).shape, x, y, 3.2),
        tip(fmt::format("{}\n{}: {}\n{}: {}", series.name, axis_title(chart_.x),
                        pretty(series.x[k], 7), axis_title(chart_.y), pretty(series.y[k]))));
  }

  struct End {
    size_t series = 0;
    double x = 0, y = 0;  // end of the line
    std::string words;
  };

  // The last visible point, moved to the border with an arrow if it lies above or below the plot.
  End end_of(size_t i) const {
    const Series& series = chart_.series[i];
    End end = {i, plot_.right(), plot_.bottom(), series.name};
    if (strokes_[i].empty()) {
      end.words += ": no values";
      return end;
    }
    size_t last = strokes_[i].front().front();
    for (const auto& stroke : strokes_[i]) {
      for (const size_t k : stroke)
        if (series.x[k] <= layout_.x.high) last = k;
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
    const std::vector<double> placed = spread_out(wanted, kLabelSpacing, plot_.top, plot_.bottom());
    const double x = plot_.right() + 24;
    for (size_t n = 0; n < ends.size(); ++n) {
      const End& end = ends[n];
      const bool any = !strokes_[end.series].empty();
      std::string label = tip(chart_.series[end.series].name) + "\n";
      if (any)
        label += fmt::format("<path class=\"leader\" d=\"M{} {}L{} {}L{} {}\"/>\n",
                             pixels(end.x + 5), pixels(end.y), pixels(plot_.right() + 6),
                             pixels(end.y), pixels(x - 3), pixels(placed[n]));
      label += text(x, placed[n] + 4, Anchor::kStart, any ? "label" : "small",
                    shortened(end.words, kLabelSize, canvas_.width - x - 2));
      body_ += in_group(end.series, "", label);
    }
  }

  const LineChart& chart_;
  const Canvas canvas_;
  const LineLayout layout_;
  const Box plot_;
  std::vector<std::vector<std::vector<size_t>>> strokes_;
  std::string body_;
};

}  // namespace

LineDrawing draw(const LineChart& chart, const Canvas& canvas) {
  return Sketch(chart, canvas).finish();
}

}  // namespace sextant::chart
