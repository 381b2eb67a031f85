// The report of `sextant doctor` on files, as text, as JSON and as a page. The JSON has the schema
// of python/sextant/doctor/report.py.
#pragma once

#include <string>
#include <vector>

#include "sextant/chart/report.h"
#include "sextant/rope_config/compare_configs.h"

namespace sextant::cli {

struct DoctorReport {
  std::string subject, against;  // the second file, and the first
  ReadRopeConfig read;           // the subject
  ConfigComparison result;

  // "sound", "findings" or "cannot be judged".
  std::string verdict() const;
  int exit_status() const;  // 0, 1 or 2
};

// Prints the layers of the subject and the findings to standard output.
void print(const DoctorReport& report);
std::string json_text(const DoctorReport& report);
chart::Report page_of(const DoctorReport& report);

}  // namespace sextant::cli
