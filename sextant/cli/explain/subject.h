// A RoPE configuration with the numbers derived from it, printed as text and as a chart.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/read_config.h"
#include "sextant/rope_config/rope_config.h"
#include "sextant/rope_config/vision.h"

namespace CLI {
class App;
}

namespace sextant::cli {

struct Subject {
  const RopeConfig& config;
  const Explained& numbers;
};

// Prints lines of cells in columns, and an empty line.
void print_table(const std::vector<std::vector<std::string>>& lines);

// Cells of tables: "half-split" or "no (NoPE)"; "YaRN x 4"; "4096" or "chunks of 8192".
std::string rotates_of(const RopeConfig& config);
std::string stretch_of_group(const RopeConfig& config, const Explained& numbers);
std::string window_of(const RopeConfig& config);

// Prints a table of the layer groups: rotation, stretch, window.
void print_groups(const std::vector<Subject>& subjects);

// A name of a file for a terminal, at most so long.
std::string shortened(const std::string& name, size_t most);

// Formats a number with six significant digits.
std::string number(double x);

// "0-4, 6-10": consecutive numbers as ranges; after four ranges ", ... (40 layers)".
std::string layer_list(const std::vector<int64_t>& numbers);

// Lines of at most 90 characters, broken at spaces.
std::vector<std::string> wrapped(const std::string& text);
// Prints them to standard output.
void print_wrapped(const std::string& text);

// Prints to standard output. all: one line per pair. legend: a sentence that explains the columns.
void print(const Subject& subject, bool all, bool legend);

// A vision part, as a section of its own.
void print_vision(const VisionPart& part);

chart::LineChart wavelengths(const Subject& subject);

// The options that select a RoPE configuration, shared by explain and convert.
struct ConfigRequest {
  std::string path;
  Overrides overrides;
};

// Adds --base. `base` lives as long as the command.
void add_base(CLI::App& command, double& base);

// Adds PATH, --base, --local-base, --head-dim. The request lives as long as the command.
std::shared_ptr<ConfigRequest> add_config(CLI::App& command);

}  // namespace sextant::cli
