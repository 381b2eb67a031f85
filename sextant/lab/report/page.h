// The HTML report of a survey: the answer and a chart first, then tables, claims, charts, maps and
// settings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sextant/chart/report.h"
#include "sextant/lab/report/findings.h"

namespace sextant::lab {

// `status` marks a report of an unfinished survey (status_of); it is empty for a complete one.
chart::Report report_page(const nlohmann::json& manifest, const Findings& findings,
                          const std::string& command, const std::string& status);

// "3 of 42 arms so far"; empty if all arms are done.
std::string status_of(size_t done, size_t arms);

// "17.1 thousand bytes per second and worker"; empty if nothing was trained.
std::string speed(const Findings& findings);

}  // namespace sextant::lab
