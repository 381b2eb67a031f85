// A report: one HTML file that needs no network and no other file.
//
// It opens with a title, a few sentences and the blocks of `opening`; links to the sections follow.
// Tables sort when a heading is clicked; charts show their values under the pointer and hide a
// series whose name is clicked; downloads are inside the file. The page follows the light or dark
// mode of its reader and fits a phone and paper.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sextant/chart/chart.h"

namespace sextant::chart {

// Plain text: paragraphs parted by an empty line, lines that start with "- " make a list,
// `backquotes` set code and **stars** strong. Everything else, HTML too, stands as it is written.
struct Prose {
  std::string text;
};

enum class Tone { kPlain, kGood, kBad, kQuiet };

// One cell: words, or a number that sorts by its value.
struct Cell {
  std::string text = {};
  double value = std::numeric_limits<double>::quiet_NaN();  // NaN sorts by text
  Tone tone = Tone::kPlain;
  std::string note = {};  // small print under the text
};
Cell words(std::string text, Tone tone = Tone::kPlain);
// Shown with `decimals` places; NaN as a dash.
Cell number(double value, int decimals, Tone tone = Tone::kPlain);

struct Column {
  std::string name;
  std::string unit = {};  // small print under the name
};

// A table that is too wide for its page scrolls sideways under a shadow, its first column fixed.
struct Table {
  std::string caption = {};
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows = {};  // each as long as columns
  bool stacks = false;  // on a narrow page each row becomes a block of lines: for cells of words
};

// Prose behind a line that opens it.
struct Details {
  std::string summary;
  std::string text;  // as Prose
};

// Names and values, as small print: the settings of a run.
struct Settings {
  std::vector<std::pair<std::string, std::string>> items;
};

// A button that saves `content` as `file`.
struct Download {
  std::string file;        // "results.csv"
  std::string media_type;  // "text/csv"
  std::string content;
};

using ReportBlock = std::variant<Prose, Details, Table, LineChart, HeatMap, Settings, Download>;

struct Section {
  std::string heading;
  std::vector<ReportBlock> blocks = {};
};

struct Report {
  std::string title;
  std::string status = {};  // a mark above the title: "3 of 42 arms so far"; or empty
  std::string lead;         // prose under the title: the answer
  Section opening = {};     // what stands before the links to the sections
  std::vector<Section> sections;
  std::string footer;  // version, command, date
};

std::string html(const Report& report);

// The line of a page that shows this status. A page with another status, or none, lacks it.
std::string status_html(const std::string& status);

// Writes the file whole or not at all.
void write_report(const Report& report, const std::filesystem::path& path);

}  // namespace sextant::chart
