#include "sextant/lab/report/survey_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/checked_json.h"
#include "sextant/files/read_file.h"
#include "sextant/lab/plan/manifest.h"
#include "sextant/lab/report/page.h"
#include "sextant/lab/report/report.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The day of a file, in UTC.
std::string date_of(fs::file_time_type time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  return fmt::format("{:%Y-%m-%d}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(
                         std::chrono::time_point_cast<std::chrono::seconds>(system))));
}

// The loss of bigrams on the survey's text; nullopt if the text is not here or has changed.
std::optional<BigramLoss> recorded_bigrams(const fs::path& arm, const Settings& settings) {
  const json assignment = read_json(arm / kArmFile);
  std::vector<fs::path> text;
  for (const json& file : assignment.at("files")) text.push_back(arm / file.get<std::string>());
  try {
    const Corpus corpus = read_corpus(text, settings.test.share);
    if (identity(corpus) == assignment.at("text")) return bigrams_of(corpus, settings);
  } catch (const Error&) {
  }
  return {};
}

// The results of the arms that are done; verdicts and claims follow from them.
SurveyRecord record_of_arms(const fs::path& folder, const std::vector<fs::path>& results) {
  SurveyRecord record;
  record.manifest = read_json(folder / kManifestFile);
  const JsonFields fields(record.manifest, (folder / kManifestFile).string());
  const auto settings = fields.at("settings").get<Settings>();
  std::vector<ArmResult> done;
  for (const fs::path& one : results) done.push_back(read_result(one));
  const auto bigrams = recorded_bigrams(results.front().parent_path(), settings);
  record.findings = findings_of(done, settings, {.bigrams = bigrams, .defaults = {}});
  return record;
}

SurveyRecord record_of_folder(const fs::path& folder) {
  std::vector<fs::path> results;
  size_t planned = 0;
  fs::file_time_type newest = fs::file_time_type::min();
  for (const fs::directory_entry& arm : fs::directory_iterator(folder / "arms")) {
    planned += fs::exists(arm.path() / kArmFile) ? 1 : 0;
    const fs::path result = arm.path() / kResultFile;
    if (!fs::exists(result)) continue;
    results.push_back(result);
    newest = std::max(newest, fs::last_write_time(result));
  }
  if (results.empty()) fail(folder.string() + ": expected results of arms, but none is done");
  std::ranges::sort(results);
  const fs::path file = folder / kResultsFile, command = folder / kCommandFile;
  const json recorded = fs::exists(file) ? read_json(file) : json::object();
  const bool is_complete = recorded.contains("arms") &&
                           recorded.at("arms").size() == results.size() &&
                           fs::last_write_time(file) >= newest;
  SurveyRecord record =
      is_complete ? survey_of(recorded, file.string()) : record_of_arms(folder, results);
  record.planned = planned;
  record.date = date_of(newest);
  if (fs::exists(command)) record.command = read_file(command, kMostNoteBytes);
  return record;
}

}  // namespace

std::optional<BigramLoss> bigrams_of(const Corpus& corpus, const Settings& settings) {
  // Bytes whose neighbours on both sides are seen have no such reference.
  if (settings.objective == Objective::kMasked) return {};
  return bigram_loss(corpus.train,
                     test_blocks(corpus, settings.test.longest(), settings.test.blocks),
                     settings.training.length / 2);
}

SurveyRecord survey_of(const json& content, const std::string& where) {
  const JsonFields file(content, where);
  SurveyRecord record;
  for (const char* name : {"sextant", "settings", "text"}) record.manifest[name] = file.at(name);
  record.findings = recorded_findings(file, record.unknown_claims);
  record.command = file.optional_string("command").value_or("");
  record.date = file.optional_string("date").value_or("");
  record.planned = record.findings.results.size();
  if (const auto planned = file.optional_integer("planned", 0, int64_t{1} << 40)) {
    record.planned = static_cast<size_t>(*planned);
  }
  return record;
}

SurveyRecord read_survey(const fs::path& path) {
  SurveyRecord record = naming_file(path, [&] {
    return fs::is_directory(path) ? record_of_folder(path)
                                  : survey_of(read_json(path), path.string());
  });
  record.name = (fs::is_directory(path) ? fs::absolute(path / "").parent_path() : path).stem();
  return record;
}

chart::Report report_page(const SurveyRecord& record) {
  chart::Report page =
      report_page(record.manifest, record.findings, record.command,
                  status_of(record.findings.results.size(), record.planned), record.date);
  if (record.unknown_claims > 0) {
    page.opening.blocks.emplace_back(chart::Prose{fmt::format(
        "Recorded claims that this version does not know: {}.", record.unknown_claims)});
  }
  return page;
}

void keep_methods(SurveyRecord& record, const std::vector<std::string>& labels) {
  std::vector<MethodResult> kept;
  std::vector<MethodResult>& all = record.findings.methods;
  for (const std::string& label : labels) {
    const auto method = std::ranges::find(all, label, &MethodResult::label);
    if (method == all.end()) {
      std::string known;
      for (const MethodResult& one : all) known += " " + one.label;
      fail("report: --methods: expected some of" + known + ", but got " + label);
    }
    kept.push_back(*method);
  }
  if (!labels.empty()) all = std::move(kept);
}

}  // namespace sextant::lab
