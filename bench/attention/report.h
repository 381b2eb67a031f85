// Measurements as a text table and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/attention/measure.h"

namespace sextant::bench {

std::string table_head(const MeasureOptions& options);
std::string table_row(const Measured& measured, const MeasureOptions& options);
nlohmann::json to_json(const Measured& measured);

}  // namespace sextant::bench
