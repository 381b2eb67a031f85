// Arms with their measures give findings as those of a run do. Of arms without measures the means
// of "summary" are read, and what needs the arms is left out. Then verdicts, reference and claims
// are replaced by those that are recorded.
#include "sextant/lab/report/survey_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/read_file.h"
#include "sextant/lab/plan/manifest.h"
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
  record.findings = findings_of(done, settings, {.bigrams = bigrams});
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

constexpr double kLargest = std::numeric_limits<double>::max();

// The one of `all` whose name the field has.
template <class T>
T named(std::initializer_list<T> all, const JsonFields& fields, const std::string& field) {
  std::string known;
  for (const T one : all) {
    if (fields.string(field) == name(one)) return one;
    known += fmt::format(" \"{}\"", name(one));
  }
  fields.refuse(field, "one of" + known);
}

MethodResult& method_of(Findings& findings, const JsonFields& fields) {
  const auto method =
      std::ranges::find(findings.methods, fields.string("method"), &MethodResult::label);
  if (method == findings.methods.end()) fields.refuse("method", "a label of \"arms\"");
  return *method;
}

void read_mean(const JsonFields& fields, Findings& findings) {
  MethodResult& method = method_of(findings, fields);
  const std::string measure = fields.string("measure");
  const int64_t length = fields.integer("length", 1, int64_t{1} << 40);
  const MeanInterval mean{.mean = fields.number("mean", -kLargest, kLargest),
                          .half = fields.optional_number("half_interval95", 0, kLargest)};
  findings.has_intervals = findings.has_intervals || mean.half.has_value();
  if (measure == "lost") method.lost = mean;
  if (measure == kBaseChange) {
    const size_t n = method.changes.size();
    if (n >= method.losses.size() || method.losses[n].length != length)
      fields.refuse("length", "each of test.lengths once, in their order");
    method.changes.push_back(mean);
  }
  if (measure == "retrieval" || measure == "direction")
    method.accuracies.push_back({length, fields.integer("distance", 1, int64_t{1} << 40), mean});
  const auto what = loss_measure(measure);
  if (!what) return;
  const auto at = std::ranges::find(method.losses, length, &LossMeans::length);
  if (at == method.losses.end()) fields.refuse("length", "one of test.lengths");
  (*at).*(*what) = mean;
  if (*what != &LossMeans::sliding) return;
  const auto seeds = static_cast<size_t>(fields.integer("seeds", 1, 1 << 20));
  const size_t fewest = findings.fewest_seeds;
  findings.fewest_seeds = fewest == 0 ? seeds : std::min(seeds, fewest);
}

// The changes of a method without recorded ones. Those from a base have no interval, as that of a
// difference is not known.
void count_changes(MethodResult& method, const Findings& findings) {
  const auto base = std::ranges::find(findings.methods, method.base, &MethodResult::label);
  method.changes.clear();
  for (const LossMeans& at : method.losses) {
    method.changes.push_back(at.sliding_change);
    if (base == findings.methods.end()) continue;
    const MeanInterval& from = base->losses_at(findings.settings.training.length).sliding;
    method.changes.back() = {.mean = at.sliding.mean - from.mean};
  }
}

// The means of methods whose arms have none.
void read_summary(const JsonFields& file, Findings& findings) {
  const Settings& settings = findings.settings;
  const MeanInterval none{.mean = NAN};
  for (MethodResult& method : findings.methods) {
    for (const int64_t length : settings.test.lengths)
      method.losses.push_back({length, none, none, none, none});
  }
  for (const json& row : file.at("summary"))
    read_mean(JsonFields(row, file.where() + ": summary"), findings);
  for (MethodResult& method : findings.methods) {
    if (std::isnan(method.losses.back().sliding.mean)) {
      method.losses.clear();
      method.seeds.clear();
      continue;
    }
    if (method.changes.size() != method.losses.size()) count_changes(method, findings);
    method.change = method.changes.back();
  }
}

void read_verdict(const JsonFields& fields, Findings& findings) {
  const auto learned = [&](const char* name) {
    const std::optional<bool> flag = fields.optional_flag(name);
    return !flag ? Learned::kUnknown : *flag ? Learned::kYes : Learned::kNo;
  };
  MethodResult& method = method_of(findings, fields);
  method.verdict = named({Verdict::kHolds, Verdict::kDrifts, Verdict::kBreaks, Verdict::kDiverged,
                          Verdict::kNotLearned},
                         fields, "verdict");
  method.text = learned("text_learned");
  method.retrieval = learned("small_task_learned");
}

// nullopt for a claim that this version does not know.
std::optional<CheckedClaim> claim_of(const JsonFields& fields) {
  std::optional<CheckedClaim> found;
  for (const ClaimSubject& subject : claim_subjects()) {
    for (const Claim& claim : subject.claims) {
      const bool same =
          claim.text == fields.string("claim") && key(claim.measure) == fields.string("measure");
      if (same) found = CheckedClaim{.claim = claim};
    }
  }
  if (!found) return {};
  std::vector<std::string> arms;
  fields.read("arms", arms);
  if (arms.empty() || arms.size() > 2) fields.refuse("arms", "one or two labels");
  found->method = arms.front();
  if (arms.size() > 1) found->other = arms.back();
  found->outcome =
      named({Outcome::kHolds, Outcome::kFails, Outcome::kUndecided, Outcome::kNotLearned}, fields,
            "outcome");
  found->claim.side = named({Side::kBelow, Side::kAbove}, fields, "side");
  found->claim.bound = fields.number("bound", -kLargest, kLargest);
  found->over = fields.string("over");
  found->measured.interval = {.mean = fields.number("mean", -kLargest, kLargest),
                              .half = fields.number("half_interval95", 0, kLargest)};
  return found;
}

std::optional<LearningReference> reference_of(const JsonFields& file) {
  const json* const object = file.optional_object("reference");
  if (object == nullptr) return {};
  const JsonFields fields(*object, file.where() + ": reference");
  return LearningReference{.name = fields.string("name"),
                           .loss = fields.number("loss", 0, kLargest),
                           .margin = fields.number("margin", 0, kLargest)};
}

// Groups arms without measures. If a method has arms with products of positions, these stand for
// all of its arms.
std::vector<MethodResult> without_measures(std::span<const ArmResult> results,
                                           const Settings& settings) {
  std::vector<MethodResult> methods = by_method(results, settings);
  for (MethodResult& method : methods) {
    const auto has_none = [](const ArmResult& arm) { return arm.positions.heads.empty(); };
    if (!std::ranges::all_of(method.seeds, has_none)) std::erase_if(method.seeds, has_none);
  }
  return methods;
}

// The same of an object in the form of results.json. Counts the recorded claims that this version
// does not know.
Findings recorded_findings(const JsonFields& file, int64_t& unknown_claims) {
  const auto settings = file.at("settings").get<Settings>();
  std::vector<ArmResult> results;
  for (const json& arm : file.at("arms")) results.push_back(arm.get<ArmResult>());
  const std::optional<LearningReference> reference = reference_of(file);
  const bool is_measured = std::ranges::all_of(results, [](const ArmResult& result) {
    return result.diverged || !result.lengths.empty() || !result.retrieval.empty();
  });
  Findings findings{.settings = settings, .results = results};
  if (is_measured) {
    Background background;
    if (reference && reference->name == "bigrams")
      background.bigrams = BigramLoss{.mean = reference->loss};
    findings = findings_of(results, settings, background);
  } else {
    findings.methods = without_measures(results, settings);
    read_summary(file, findings);
  }
  if (file.has("verdicts")) {
    for (const json& row : file.at("verdicts"))
      read_verdict(JsonFields(row, file.where() + ": verdicts"), findings);
    findings.reference = reference;
    if (is_measured) findings.rankings = rankings(findings.methods, settings);
  }
  if (!file.has("claims")) return findings;
  findings.claims.clear();
  for (const json& row : file.at("claims")) {
    const auto claim = claim_of(JsonFields(row, file.where() + ": claims"));
    if (claim) findings.claims.push_back(*claim);
    unknown_claims += claim ? 0 : 1;
  }
  return findings;
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
  if (const auto planned = file.optional_integer("planned", 0, int64_t{1} << 40))
    record.planned = static_cast<size_t>(*planned);
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
  if (record.unknown_claims > 0)
    page.opening.blocks.emplace_back(chart::Prose{fmt::format(
        "Recorded claims that this version does not know: {}.", record.unknown_claims)});
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
