// Each kind of block has its own html_of(). The page is one file: its style, its script and the
// compressed files behind its links are inside.
#include "sextant/chart/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "sextant/base/error.h"
#include "sextant/chart/draw.h"
#include "sextant/chart/text.h"
#include "sextant/files/gzip.h"
#include "sextant/files/write_file.h"

namespace sextant::chart {
namespace {

using nlohmann::json;

constexpr Canvas kWide = {.width = 920, .height = 460, .heading = false, .hover = false};
constexpr Canvas kNarrow = {
    .width = 390, .height = 300, .heading = false, .end_labels = false, .hover = false};
constexpr size_t kMostCells = 1 << 18;  // the page omits the values of larger maps

std::string html_of(const Prose& block) { return prose_html(block.text); }

std::string html_of(const Details& block) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape(block.summary),
                     prose_html(block.text));
}

std::string html_of(const Listing& block) {
  return "<pre class=\"card\"><code>" + escape(block.text) + "</code></pre>\n";
}

std::string_view css_of(Tone tone) {
  constexpr std::string_view kNames[] = {"", "good", "bad", "quiet"};
  return kNames[static_cast<size_t>(tone)];
}

// Whether a column holds any numbers: it is then right-aligned, and so is its heading.
bool holds_numbers(const Table& table, size_t column) {
  for (const auto& row : table.rows)
    if (!std::isnan(row[column].value)) return true;
  return false;
}

// Whether a column holds text that is too long for one line in a table: it then wraps.
bool holds_sentences(const Table& table, size_t column) {
  constexpr size_t kLongest = 24;  // characters
  for (const auto& row : table.rows)
    if (std::isnan(row[column].value) && row[column].text.size() > kLongest) return true;
  return false;
}

std::string heading_of(const Column& column, bool numbers) {
  return fmt::format(
      "<th scope=\"col\"{}><button type=\"button\"><span class=\"arrow\">{}</span>{}</button></th>",
      numbers ? " class=\"number\"" : "", escape(column.name),
      column.unit.empty() ? "" : "<small>" + escape(column.unit) + "</small>");
}

// Escaped text that may break after ':' or '=', such as "rerope:window=L".
std::string breakable(const std::string& words) {
  std::string out;
  for (const char c : escape(words)) {
    out += c;
    if (c == ':' || c == '=') out += "<wbr>";
  }
  return out;
}

// Each cell carries the name of its column, for pages on which rows are stacked.
std::string html_of(const Cell& cell, const Column& column, bool numbers, bool sentences) {
  const std::string key =
      std::isnan(cell.value) ? "" : fmt::format(" data-value=\"{}\"", cell.value);
  return fmt::format("<td class=\"{}{}{}\" data-label=\"{}\"{}>{}{}</td>", css_of(cell.tone),
                     numbers ? " number" : "", sentences ? " words" : "", escape(column.name), key,
                     std::isnan(cell.value) ? breakable(cell.text) : escape(cell.text),
                     cell.note.empty() ? "" : "<small>" + escape(cell.note) + "</small>");
}

// The caption is outside of the scrolling element.
std::string html_of(const Table& table) {
  const std::string name = escape(table.caption);
  std::string out = "<div class=\"card\">\n";
  if (!name.empty()) out += "<p class=\"caption\">" + name + "</p>\n";
  out += fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table "
      "class=\"sortable{1}\" aria-label=\"{0}\">\n<thead><tr>",
      name, table.stacks ? " stack" : "");
  std::vector<bool> numbers, sentences;
  for (const auto& row : table.rows) {
    if (row.size() == table.columns.size()) continue;
    fail(fmt::format("report: table \"{}\": expected {} cells in each row, but got {}",
                     table.caption, table.columns.size(), row.size()));
  }
  for (size_t c = 0; c < table.columns.size(); ++c) {
    numbers.push_back(holds_numbers(table, c));
    sentences.push_back(!numbers[c] && holds_sentences(table, c));
    out += heading_of(table.columns[c], numbers[c]);
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (size_t c = 0; c < row.size(); ++c)
      out += html_of(row[c], table.columns[c], numbers[c], sentences[c]);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div></div>\n";
}

std::string stage(const Drawing& drawing, std::string_view title, const char* css) {
  const Box& plot = drawing.plot;
  return fmt::format(
      "<div class=\"stage {}\" data-plot=\"{} {} {} {}\"><svg class=\"chart\" role=\"img\" "
      "aria-label=\"{}\" viewBox=\"0 0 {} {}\" style=\"max-width:{}px\">\n{}</svg></div>\n",
      css, pixels(plot.left), pixels(plot.top), pixels(plot.width), pixels(plot.height),
      escape(title), drawing.width, drawing.height, drawing.width, drawing.body);
}

// JSON inside a <script>, where "<" must not start a tag.
std::string script_data(const json& data) {
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return "<script type=\"application/json\">" + text + "</script>\n";
}

// A file name that is valid on every file system.
std::string file_name(std::string_view title, std::string_view suffix) {
  const std::string name = slug(title.substr(0, 60));
  return (name.empty() ? "figure" : name) + std::string(suffix);
}

// The attributes of a link that saves `content`. The content is compressed with gzip, to a fifth of
// its size, and the page's script decompresses it at a click. Without a script, or with a browser
// from before 2023, the compressed file is saved.
std::string saves(std::string_view file, std::string_view media_type, std::string_view content) {
  return fmt::format("download=\"{}.gz\" data-type=\"{}\" href=\"data:application/gzip;base64,{}\"",
                     escape(file), escape(media_type), base64(gzip(content)));
}

std::string link(std::string_view words, std::string_view file, std::string_view media_type,
                 std::string_view content) {
  return fmt::format("<a {}>{}</a>", saves(file, media_type, content), escape(words));
}

template <class Chart>
std::string figure(const Chart& chart, const std::string& content, const json& data,
                   bool with_numbers = true) {
  std::string out = "<figure class=\"card\">\n";
  if (!chart.title.empty() || !chart.subtitle.empty())
    out += fmt::format("<figcaption>{}<small>{}</small></figcaption>\n", escape(chart.title),
                       escape(chart.subtitle));
  out += content + "<p class=\"links\">";
  if (with_numbers)
    out += link("Numbers (CSV)", file_name(chart.title, ".csv"), "text/csv", csv(chart));
  out += link("Picture (SVG)", file_name(chart.title, ".svg"), "image/svg+xml", svg(chart));
  out += "</p>\n";
  return out + script_data(data) + "</figure>\n";
}

// The names of the lines, which switch them on and off; on a narrow screen they are also the
// legend.
std::string legend(const LineChart& chart) {
  if (chart.series.size() < 2) return "";
  std::string out = "<div class=\"legend\">";
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Look it = look(i);
    out += fmt::format(
        "<button type=\"button\" data-series=\"{}\" aria-pressed=\"true\" title=\"Show or hide; "
        "with Shift: this one alone\"><svg class=\"chart {}\" width=\"30\" height=\"12\" "
        "aria-hidden=\"true\"><path class=\"line\" stroke-dasharray=\"{}\" d=\"M1 6H29\"/><path "
        "class=\"point\" d=\"{}\"/></svg>{}</button>",
        i, it.css, it.dashes.empty() ? "none" : it.dashes, point_path(it.shape, 15, 6, 3.2),
        escape(chart.series[i].name));
  }
  return out + "<button type=\"button\" class=\"all\">all or none</button></div>\n";
}

json axis_data(const Axis& axis, Range range) {
  return {{"title", axis_title(axis)},
          {"log", axis.scale != Scale::kLinear},
          {"low", range.low},
          {"high", range.high}};
}

std::string html_of(const LineChart& chart) {
  const LineDrawing wide = draw(chart, kWide), narrow = draw(chart, kNarrow);
  json data = {{"x", axis_data(chart.x, wide.x)}, {"y", axis_data(chart.y, wide.y)}};
  data["series"] = json::array();
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    json x = json::array(), y = json::array();
    for (const auto& stroke : wide.strokes[i]) {
      for (const size_t k : stroke) {
        x.push_back(series.x[k]);
        y.push_back(series.y[k]);
      }
    }
    data["series"].push_back({{"name", series.name}, {"look", look(i).css}, {"x", x}, {"y", y}});
  }
  return figure(chart,
                stage(wide.drawing, chart.title, "wide") +
                    stage(narrow.drawing, chart.title, "narrow") + legend(chart),
                data);
}

json cells_data(const Cells& cells) {
  json out = {{"count", cells.count}, {"first", cells.first}, {"step", cells.step}};
  if (!cells.names.empty()) out["names"] = cells.names;
  return out;
}

std::string html_of(const HeatMap& map) {
  Canvas wide = kWide;
  wide.width = map.rows.count == map.columns.count ? 640 : 760;
  json data = {{"title", axis_title(map.value)},
               {"x", axis_title(map.x)},
               {"y", axis_title(map.y)},
               {"columns", cells_data(map.columns)},
               {"rows", cells_data(map.rows)}};
  const bool with_numbers = map.values.size() <= kMostCells;
  if (with_numbers && !map.values.empty()) {
    const std::vector<float> values(map.values.begin(), map.values.end());
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    data["values"] = base64(bytes);
  }
  return figure(
      map,
      stage(draw(map, wide), map.title, "wide") + stage(draw(map, kNarrow), map.title, "narrow"),
      data, with_numbers);
}

std::string html_of(const NamedValues& settings) {
  std::string out = "<dl class=\"card settings\">\n";
  for (const auto& [name, value] : settings.items)
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value));
  return out + "</dl>\n";
}

std::string html_of(const Download& download) {
  const double size = static_cast<double>(download.content.size());
  const std::string shown = size < 1000  ? fmt::format("{} bytes", size)
                            : size < 1e6 ? fmt::format("{:.0f} kB", size / 1e3)
                                         : fmt::format("{:.1f} MB", size / 1e6);
  return fmt::format("<a class=\"download\" {}>{}<small>{}</small></a>\n",
                     saves(download.file, download.media_type, download.content),
                     escape(download.file), shown);
}

std::string html_of(const Section& section, const std::string& id) {
  std::string out = fmt::format("<section id=\"{}\">\n", id);
  if (!section.heading.empty()) out += "<h2>" + escape(section.heading) + "</h2>\n";
  for (const auto& block : section.blocks)
    out += std::visit([](const auto& one) { return html_of(one); }, block);
  return out + "</section>\n";
}

std::string navigation(const Report& report) {
  std::string out;
  size_t headings = 0;
  for (size_t i = 0; i < report.sections.size(); ++i) {
    if (report.sections[i].heading.empty()) continue;
    ++headings;
    out += fmt::format("<a href=\"#part-{}\">{}</a>\n", i, escape(report.sections[i].heading));
  }
  return headings < 3 ? "" : "<nav>\n" + out + "</nav>\n";
}

struct Part {
  std::string name;
  Section section;  // without a heading
};

std::vector<Part> parts_of(const Report& report) {
  std::vector<Part> parts{{"answer", {"", {Prose{report.lead}}}}};
  std::ranges::copy(report.opening.blocks, std::back_inserter(parts.front().section.blocks));
  const auto add = [&](const Section& section) {
    if (!section.heading.empty()) parts.push_back({slug(section.heading), {"", section.blocks}});
    for (const ReportBlock& block : section.blocks) {
      if (!name_of(block).empty()) parts.push_back({name_of(block), {"", {block}}});
    }
  };
  add(report.opening);
  std::ranges::for_each(report.sections, add);
  return parts;
}

}  // namespace

Cell words(std::string text, Tone tone) { return {.text = std::move(text), .tone = tone}; }

Cell number(double value, int decimals, Tone tone) {
  return {pretty_fixed(value, decimals), value, tone};
}

std::string html(const Report& report) {
  // With this policy the browser enforces that the page needs no network.
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{}{}{}</style>\n</head>\n"
      "<body>\n<main>\n<header>\n",
      escape(report.title), chart_css(), chart_dark_css(), report_css());
  if (!report.status.empty()) out += status_html(report.status);
  out += fmt::format("<h1>{}</h1>\n<div class=\"lead\">{}</div>\n</header>\n", escape(report.title),
                     prose_html(report.lead));
  if (!report.opening.blocks.empty()) out += html_of(report.opening, "answer");
  out += navigation(report);
  for (size_t i = 0; i < report.sections.size(); ++i)
    out += html_of(report.sections[i], fmt::format("part-{}", i));
  if (!report.footer.empty()) out += "<footer>" + prose_html(report.footer) + "</footer>\n";
  return out + fmt::format("</main>\n<script>\n{}</script>\n</body>\n</html>\n", report_js());
}

std::string status_html(const std::string& status) {
  return "<p class=\"status\">" + escape(status) + "</p>\n";
}

void write_report(const Report& report, const std::filesystem::path& path) {
  write_file(path, html(report));
}

std::string name_of(const ReportBlock& block) {
  const auto of = [](const auto& one) -> std::string {
    using Kind = std::decay_t<decltype(one)>;
    if constexpr (std::is_same_v<Kind, Details>) {
      return slug(one.summary);
    } else if constexpr (std::is_same_v<Kind, Table>) {
      return one.name.empty() ? slug(one.caption) : one.name;
    } else if constexpr (std::is_same_v<Kind, LineChart> || std::is_same_v<Kind, HeatMap>) {
      return one.name.empty() ? slug(one.title) : one.name;
    } else {
      return "";
    }
  };
  return std::visit(of, block);
}

Report only_parts(const Report& report, const std::vector<std::string>& names) {
  const std::vector<Part> parts = parts_of(report);
  Report out;
  for (const std::string& name : names) {
    const auto part = std::ranges::find(parts, name, &Part::name);
    if (part != parts.end()) {
      out.sections.push_back(part->section);
      continue;
    }
    std::string known;
    for (const Part& one : parts) known += " " + one.name;
    fail("report: --part: expected one of" + known + ", but got " + name);
  }
  return out;
}

}  // namespace sextant::chart
