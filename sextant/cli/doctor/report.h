// The report of `sextant doctor`, of files and of a model that runs: as text, as JSON and as a
// page, and as annotations for continuous integration. docs/doctor.md describes the JSON.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sextant/chart/report.h"
#include "sextant/rope_config/compare_configs.h"

namespace sextant::cli {

// A line of the table: layers that are alike in configuration and in verdict.
struct LayerRow {
  std::vector<int64_t> layers = {};  // empty: all, or not known
  std::string kind;
  std::string rotates;  // "half-split", "interleaved", "yes", "no (NoPE)"
  std::string rotated;  // "0-127 of 128": the channels that rotate
  double base = 0;      // 0: none
  std::string stretch, window;
  double scale = 0;          // 0: not known
  std::string verdict = {};  // the fields of its findings, or "ok"
};

// A fact that doctor judges of a model that runs, or "model", which files do not show. status: "as
// configured", "differs" or "not measured", in these layers (empty: all) and for the reason `why`.
struct JudgedFact {
  std::string fact, status;
  std::vector<int64_t> layers;
  std::string why;
};

struct DoctorReport {
  std::string subject, against;  // the model or file, and the source of expected values
  std::vector<std::pair<std::string, std::string>> versions;
  std::vector<LayerRow> rows = {};
  ConfigComparison result = {};
  // The file with the configuration, and the path of the language model's object in it; empty:
  // none.
  std::string file = {}, place = {};
  std::vector<JudgedFact> facts = {};

  // "sound", "findings" or "cannot be judged".
  std::string verdict() const;
  // 1: an error, or with `strict` a warning; 2: something is not judged; 0: neither.
  int exit_status(bool strict = false) const;
  // "rotation, window, mask: as configured; softcap: not measured", or "".
  std::string facts_text() const;
};

// A file of any format that explain reads by itself, or two files: what changed from the first to
// the second. A file alone that its reader refuses has that as its finding. Throws Error for a
// missing file, and for one of two that is refused.
// base: of a file that does not say it; 0: not given.
DoctorReport examine_files(const std::vector<std::string>& paths, double base);

// The report of a subject that could not be examined. file: as in DoctorReport.
DoctorReport unexamined(const std::string& subject, const std::string& file,
                        const std::string& why);

// The report of a model of transformers. text: the JSON that python/sextant/doctor/examine.py
// writes; `where` begins the Error if it is another one.
DoctorReport report_of(const std::string& text, const std::string& where);

// "0-3", "all", or the kind of layers; "error" or "warning"; "window, layers 0-3: why".
std::string layers_of(const ConfigFinding& found);
std::string severity_of(const ConfigFinding& found);
std::string sentence_of(const Unjudged& unjudged);

// Prints the layers and the findings to standard output.
void print(const DoctorReport& report);
std::string json_text(const DoctorReport& report);
chart::Report page_of(const DoctorReport& report);

// Two forms that systems of continuous integration show beside the lines of a change follow.

// A workflow command of GitHub for each finding and each reason why something is not judged, and a
// line with their numbers.
std::string github_text(const std::vector<DoctorReport>& reports);

// A log of SARIF 2.1.0 (OASIS 2020) with one run. A quantity that is not judged is a result of kind
// "open". status: the exit status of this run.
std::string sarif_text(const std::vector<DoctorReport>& reports, int status);

// The line of a configuration that a finding is about, from 1; 0: not known. text: a config.json,
// also a damaged one, or flags. place: the path of the language model's object in it
// ("text_config"); "": the whole file.
int64_t line_of(const ConfigFinding& finding, const std::string& text, const std::string& place);

}  // namespace sextant::cli
