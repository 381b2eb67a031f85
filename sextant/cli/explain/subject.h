// One setting with its numbers, as text, as JSON and as a picture.
#pragma once

#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant::cli {

struct Subject {
  const RopeConfig& setting;
  Explained numbers;
};

// All groups of layers as one table: how they rotate, stretch, what they see.
void print_groups(const std::vector<Subject>& subjects);

// A number with six digits.
std::string number(double x);

// "0-4, 6-10, ... (40)": runs of numbers in few letters.
std::string layer_list(const std::vector<int64_t>& numbers);

// Pairs of channels whose frequency is not 0.
int64_t moving_pairs(const Explained& numbers);

// To standard output, in lines of at most 90 letters, broken at spaces.
void print_wrapped(const std::string& text);

// To standard output; all: a line for each pair; legend: a sentence that explains the columns.
void print(const Subject& subject, bool all, bool legend);

// All of them, with the dialect they were read from.
std::string json_text(const std::vector<Subject>& subjects, const std::string& dialect);

chart::LineChart wavelengths(const Subject& subject);

}  // namespace sextant::cli
