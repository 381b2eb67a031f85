// A report: one HTML file that needs no network and no other file.
//
// Tables sort when a heading is clicked; charts show their values under the pointer and hide a
// series whose name is clicked; downloads are inside the file. It follows its reader's light or
// dark mode, and reads on a phone and on paper.
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
};
Cell words(std::string text, Tone tone = Tone::kPlain);
// Shown with `decimals` places; NaN as a dash.
Cell number(double value, int decimals, Tone tone = Tone::kPlain);

struct Column {
  std::string name;
  std::string unit = {};  // small print under the name
};

struct Table {
  std::string caption = {};
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows = {};  // each as long as columns
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

using Block = std::variant<Prose, Table, LineChart, HeatMap, Settings, Download>;

struct Section {
  std::string heading;
  std::vector<Block> blocks = {};
};

struct Report {
  std::string title;
  std::string lead;  // prose under the title: what was asked and what came out
  std::vector<Section> sections;
  std::string footer;  // version, command, date
};

std::string html(const Report& report);

// Writes the file whole or not at all.
void write_report(const Report& report, const std::filesystem::path& path);

}  // namespace sextant::chart
