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

// To standard output; all: a line for each pair.
void print(const Subject& subject, bool all);

// All of them, with the dialect they were read from.
std::string json_text(const std::vector<Subject>& subjects, const std::string& dialect);

chart::LineChart wavelengths(const Subject& subject);

}  // namespace sextant::cli
