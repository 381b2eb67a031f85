// The table for people and the JSON for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/attention/measure.h"

namespace sextant::bench {

// What the machine reaches, per second.
struct Peaks {
  double operations = 0, bytes_read = 0;
};

std::string table_head(const MeasureOptions& options);
std::string table_row(const Measured& measured, const MeasureOptions& options, const Peaks& peaks);
nlohmann::json to_json(const Measured& measured);

}  // namespace sextant::bench
