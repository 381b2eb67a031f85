// Reports of `sextant doctor` in the forms that systems of continuous integration show beside the
// lines of a change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sextant/cli/doctor/report.h"
#include "sextant/rope_config/compare_configs.h"

namespace sextant::cli {

// A workflow command of GitHub for each finding and each reason why something is not judged, and a
// line with their numbers.
std::string github_text(const std::vector<DoctorReport>& reports);

// A log of SARIF 2.1.0 (OASIS 2020) with one run. A quantity that is not judged is a result of kind
// "open". status: the exit status of this run.
std::string sarif_text(const std::vector<DoctorReport>& reports, int status);

// The line of a configuration that a finding is about, for annotations.

// From 1; 0: not known. text: a config.json, also a damaged one, or flags. place: the path of the
// language model's object in it ("text_config"); "": the whole file.
int64_t line_of(const ConfigFinding& finding, const std::string& text, const std::string& place);

}  // namespace sextant::cli
