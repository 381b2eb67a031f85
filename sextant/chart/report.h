// A report: one HTML file that needs no network and no other file, or Markdown.
//
// It begins with a title, a few sentences and the blocks of `opening`; links to the sections
// follow. Tables sort when a heading is clicked; charts show their values under the pointer and
// hide a series whose name is clicked; downloads are inside the file. The page follows the viewer's
// light or dark mode and fits phones and paper.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sextant/chart/chart.h"

namespace sextant::chart {

// Plain text: empty lines separate paragraphs, lines that start with "- " make a list, `backquotes`
// mark code and **stars** strong text. Everything else, including HTML, is shown literally.
struct Prose {
  std::string text;
};

enum class Tone { kPlain, kGood, kBad, kQuiet };

// A cell: text, or a number that sorts by its value.
struct Cell {
  std::string text = {};
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN sorts by text
  Tone tone = Tone::kPlain;
  std::string note = {};  // small print under the text
  bool is_code = false;   // a name in a program's words, in Markdown set as code
};
Cell words(std::string text, Tone tone = Tone::kPlain);
// A number shown with `decimals` decimal places; NaN as a dash.
Cell number(double value, int decimals, Tone tone = Tone::kPlain);

struct Column {
  std::string name;
  std::string unit = {};  // small print under the name
};

// A table. If it is too wide for the page it scrolls sideways under a shadow, with its first column
// fixed.
struct Table {
  std::string caption = {};
  std::vector<Column> columns = {};
  std::vector<std::vector<Cell>> rows = {};  // each as long as columns
  bool stacks = false;  // on a narrow page each row becomes a block of lines: for text cells
  std::string name = {};
};

// Prose that is hidden behind its summary until opened.
struct Details {
  std::string summary;
  std::string text;  // as Prose
};

// Lines of a file or a command line, as they are.
struct Listing {
  std::string text;
};

// Names and values in small print, for example the settings of a run.
struct NamedValues {
  std::vector<std::pair<std::string, std::string>> items;
};

// A link that saves `content` as `file`.
struct Download {
  std::string file;        // "results.csv"
  std::string media_type;  // "text/csv"
  std::string content;
};

using ReportBlock =
    std::variant<Prose, Details, Listing, Table, LineChart, HeatMap, NamedValues, Download>;

struct Section {
  std::string heading;
  std::vector<ReportBlock> blocks = {};
};

struct Report {
  std::string title;
  std::string status = {};  // a label above the title: "3 of 42 arms so far"; or empty
  std::string lead;         // prose under the title: the answer
  Section opening = {};     // shown before the links to the sections
  std::vector<Section> sections = {};
  std::string footer = {};  // version, command, date
};

std::string html(const Report& report);

// Only these parts, in this order, without title, headings and footer: "answer" (the lead and the
// opening), a section by its heading ("claims-of-the-literature"), a table, chart or map by its
// name or title, details by their summary. Throws Error that lists the names for one that is not
// there.
Report only_parts(const Report& report, const std::vector<std::string>& names);
// The name of a table, chart, map or details; empty for other blocks.
std::string name_of(const ReportBlock& block);

// The HTML line that shows this status. A page with another status, or none, does not contain it.
std::string status_html(const std::string& status);

// Writes the file atomically (write_file.h).
void write_report(const Report& report, const std::filesystem::path& path);

// A report as Markdown, for a repository or an issue. Charts and maps are SVG files beside it,
// which follow the reader's light or dark mode and have larger print on a narrow screen; other
// blocks are text: small print of a cell follows after a line break, settings are a table, and
// downloads are left out.
struct Markdown {
  struct Figure {
    std::string file, svg;
  };
  std::string text;  // lines of at most 100 columns, but for tables and code
  std::vector<Figure> figures;
};

// `folder` is that of the figures as the text names it: "figures".
Markdown markdown(const Report& report, const std::string& folder);

}  // namespace sextant::chart
