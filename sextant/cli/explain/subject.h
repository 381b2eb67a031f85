// One setting with its numbers, as text, as JSON and as a picture.
#pragma once

#include <string>
#include <vector>

#include "sextant/chart/chart.h"
#include "sextant/setting/explain.h"
#include "sextant/setting/setting.h"

namespace sextant::cli {

struct Subject {
  const RotarySetting& setting;
  Explained numbers;
};

// To standard output; all: a line for each pair.
void print(const Subject& subject, bool all);

// All of them, with the dialect they were read from.
std::string json_text(const std::vector<Subject>& subjects, const std::string& dialect);

chart::LineChart wavelengths(const Subject& subject);

}  // namespace sextant::cli
