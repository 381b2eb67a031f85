// The HTML report of a survey: the answer and a chart first, then tables, claims, charts, maps and
// settings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "sextant/chart/report.h"
#include "sextant/lab/report/findings.h"

namespace sextant::lab {

// `status` marks a report of an unfinished survey (status_of); it is empty for a complete one.
// `date` is that of the newest result; it may be empty.
chart::Report report_page(const nlohmann::json& manifest, const Findings& findings,
                          const std::string& command, const std::string& status,
                          const std::string& date = "");

// The claims of the literature that the surveys have checked: their number by subject and outcome,
// and a table with a row for each. With several surveys a column has their lengths, if these
// differ, and equal rows of two surveys are one. `question`: only claims on the open question whose
// slug begins with it ("why-10000"), without numbers; empty: all. The section has no blocks without
// claims.
chart::Section claims_section(std::span<const Findings* const> surveys,
                              const std::string& question = "");

// Adds the leaves of an object, by their paths, without those that are null.
void add_settings(const nlohmann::json& object, chart::NamedValues& out);

// "3 of 42 arms so far"; empty if all arms are done.
std::string status_of(size_t done, size_t arms);

// "layers: 3, width: 128, heads: 4, 623 488 to 919 424 parameters": the text models.
std::string size_words(const Findings& findings);
// "11 h 24 min" of all trainings and tests; empty if unknown.
std::string time_words(const Findings& findings);

// "17.1 thousand bytes per second and worker"; empty if nothing was trained.
std::string speed(const Findings& findings);

}  // namespace sextant::lab
