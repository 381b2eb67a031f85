// Scores by length, depth and task give the tables and the maps; the sentences on the answer name
// the lengths that are handled.
#include "sextant/lab/report/retrieval_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "sextant/chart/text.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/result/interval.h"
#include "sextant/version.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

constexpr const char* kMeanOfTasks = "mean of tasks";
// Bytes of an answer that the page shows; the CSV has all of it.
constexpr size_t kShownBytes = 160;

std::string percent(double share, int decimals = 1) { return fixed(100 * share, decimals); }

// "85.0 [64, 95]", "-" without a score.
std::string cell(const ScoreInterval& score) {
  if (!score.has_mean()) return "-";
  return fmt::format("{} [{}, {}]", percent(score.mean), percent(score.low, 0),
                     percent(score.high, 0));
}

// "2048", "at least 4096" for the longest length, "less than 1024" for none.
std::string length_words(const RetrievalScores& scores, int64_t length) {
  if (length == 0) return fmt::format("less than {}", scores.lengths.front());
  return fmt::format("{}{}", length == scores.lengths.back() ? "at least " : "", length);
}

// "20 samples per task and length", or the range if they differ.
std::string samples_words(const RetrievalScores& scores) {
  size_t fewest = scores.samples.size(), most = 0;
  for (const std::string& task : scores.tasks) {
    for (const int64_t length : scores.lengths) {
      const auto count = static_cast<size_t>(
          std::ranges::count_if(scores.samples, [&](const RetrievalSample& sample) {
            return sample.task == task && sample.length == length;
          }));
      fewest = std::min(fewest, count);
      most = std::max(most, count);
    }
  }
  return fmt::format("{}{} samples per task and length", fewest,
                     fewest == most ? "" : fmt::format(" to {}", most));
}

std::string model_words(const json& manifest) {
  const json& endpoint = manifest.at("endpoint");
  if (!endpoint.is_null()) {
    const std::string url = endpoint.at("url");
    return endpoint.at("model").is_null()
               ? url
               : fmt::format("{} at {}", endpoint.at("model").get<std::string>(), url);
  }
  return std::filesystem::path(manifest.at("model").get<std::string>()).filename().string();
}

std::string positions_words(const json& manifest) {
  const json& candidate = manifest.at("candidate");
  if (candidate.at("method").is_null()) return "its own positions";
  const std::string options = candidate.at("options").dump();
  return fmt::format("{}{}", candidate.at("method").get<std::string>(),
                     options == "{}" ? "" : " " + options);
}

json interval_json(const ScoreInterval& score) {
  return {{"mean", score.mean}, {"low", score.low}, {"high", score.high}};
}

json lengths_json(const RetrievalScores& scores, const std::vector<ScoreInterval>& row) {
  json lengths = json::array();
  for (size_t n = 0; n < row.size(); ++n) {
    json& entry = lengths.emplace_back(interval_json(row[n]));
    entry["length"] = scores.lengths[n];
  }
  return lengths;
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

// One line of at most kShownBytes bytes, cut between two characters of UTF-8.
std::string shown(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  if (text.size() <= kShownBytes) return text;
  size_t end = kShownBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

chart::HeatMap heat_map(const RetrievalScores& scores, std::string title) {
  chart::HeatMap map{.title = std::move(title),
                     .subtitle = samples_words(scores),
                     .x = {.label = "length", .unit = "tokens"},
                     .y = {.label = ""},
                     .value = {.label = "score", .unit = "%", .low = 0, .high = 100},
                     .columns = {.count = static_cast<int64_t>(scores.lengths.size())},
                     .height = 300};
  for (const int64_t length : scores.lengths) map.columns.names.push_back(std::to_string(length));
  return map;
}

chart::HeatMap depth_map(const RetrievalScores& scores) {
  chart::HeatMap map = heat_map(scores, "Score by depth and length");
  map.y = {.label = "depth of the needle", .unit = "%"};
  for (size_t row = 0; row < scores.depths.size(); ++row) {
    map.rows.names.push_back(percent(scores.depths[row], 0));
    for (const double score : scores.by_depth[row]) map.values.push_back(100 * score);
  }
  map.rows.count = static_cast<int64_t>(scores.depths.size());
  return map;
}

chart::HeatMap task_map(const RetrievalScores& scores) {
  chart::HeatMap map = heat_map(scores, "Score by task and length");
  map.y = {.label = "task"};
  map.rows = {.count = static_cast<int64_t>(scores.tasks.size()), .names = scores.tasks};
  for (const std::vector<ScoreInterval>& row : scores.by_task) {
    for (const ScoreInterval& score : row) map.values.push_back(100 * score.mean);
  }
  return map;
}

chart::Table score_table(const RetrievalScores& scores) {
  chart::Table table{.caption = fmt::format("Expected strings found, in %, with 95 % intervals; {}",
                                            samples_words(scores)),
                     .columns = {{.name = "task"}},
                     .name = "scores"};
  for (const int64_t length : scores.lengths)
    table.columns.push_back({.name = std::to_string(length), .unit = "tokens"});
  const auto add = [&](const std::string& name, const std::vector<ScoreInterval>& row) {
    std::vector<chart::Cell>& cells = table.rows.emplace_back();
    cells.push_back(chart::words(name));
    for (const ScoreInterval& score : row) {
      cells.push_back(score.has_mean() ? chart::number(100 * score.mean, 1) : chart::words("-"));
      cells.back().note = fmt::format("{} to {}", percent(score.low, 0), percent(score.high, 0));
    }
  };
  for (size_t n = 0; n < scores.tasks.size(); ++n) add(scores.tasks[n], scores.by_task[n]);
  add(kMeanOfTasks, scores.over_tasks);
  for (size_t n = 0; n < scores.over_tasks.size(); ++n) {
    const ScoreInterval& score = scores.over_tasks[n];
    table.rows.back()[n + 1].tone = score.low >= kHandlesFrom   ? chart::Tone::kGood
                                    : score.high < kHandlesFrom ? chart::Tone::kBad
                                                                : chart::Tone::kPlain;
  }
  return table;
}

chart::Section wrong_answers(const RetrievalScores& scores) {
  chart::Table table{.caption = "The first incomplete answer of each task and length",
                     .columns = {{"task"}, {"length"}, {"depth"}, {"expected"}, {"answer"}},
                     .stacks = true};
  for (const std::string& task : scores.tasks) {
    for (const int64_t length : scores.lengths) {
      const auto wrong = std::ranges::find_if(scores.samples, [&](const RetrievalSample& sample) {
        return sample.task == task && sample.length == length && sample.score.value_or(0) < 1;
      });
      if (wrong == scores.samples.end()) continue;
      table.rows.push_back(
          {chart::words(task), chart::number(static_cast<double>(length), 0),
           chart::words(wrong->depth ? percent(*wrong->depth, 0) + " %" : "-"),
           chart::words(shown(joined(wrong->expected, ", "))),
           chart::words(
               shown(wrong->unscored.empty() ? wrong->answer : "(no score) " + wrong->unscored))});
    }
  }
  if (table.rows.empty()) return {"Wrong answers", {chart::Prose{"All answers were complete."}}};
  return {"Wrong answers", {std::move(table)}};
}

// The replies of one length that have no score.
struct Unscored {
  int64_t length = 0, count = 0, of = 0;
  std::string reason;  // of the first
};

std::vector<Unscored> unscored(const RetrievalScores& scores) {
  std::vector<Unscored> all;
  for (const int64_t length : scores.lengths) {
    Unscored found;
    found.length = length;
    for (const RetrievalSample& sample : scores.samples) {
      if (sample.length != length) continue;
      ++found.of;
      if (sample.score) continue;
      if (found.count++ == 0) found.reason = sample.unscored;
    }
    if (found.count > 0) all.push_back(found);
  }
  return all;
}

std::string trained_words(const RetrievalScores& scores, const json& manifest) {
  const int64_t trained = manifest.value("trained_length", int64_t{0});
  if (trained == 0) return "";
  return fmt::format(" Its configuration states a training length of {} tokens{}.", trained,
                     scores.lengths.back() > trained ? ", which is exceeded here" : "");
}

}  // namespace

std::string effective_words(const RetrievalScores& scores) {
  const EffectiveLength& found = scores.effective;
  const auto next = std::ranges::upper_bound(scores.lengths, found.length);
  const bool is_known =
      next == scores.lengths.end() ||
      scores.over_tasks[static_cast<size_t>(next - scores.lengths.begin())].has_mean();
  std::string text =
      is_known ? fmt::format(
                     "Effective length: {} tokens (up to it, the mean of tasks is at least {} %).",
                     length_words(scores, found.length), percent(kHandlesFrom))
               : fmt::format("Effective length: not known, as tasks of {} tokens have no scores.",
                             *next);
  if (!found.decided())
    text += fmt::format("\nThe 95 % intervals do not decide it: from {} to {} tokens.",
                        length_words(scores, found.low), length_words(scores, found.high));
  return text;
}

std::string missing_words(const RetrievalScores& scores) {
  std::string text;
  for (const Unscored& found : unscored(scores))
    text += fmt::format("No scores at {} tokens: {} of {} replies; the first: {}.\n", found.length,
                        found.count, found.of, found.reason);
  const auto empty = std::ranges::count_if(scores.samples, [](const RetrievalSample& sample) {
    return sample.score && sample.answer.find_first_not_of(" \t\r\n") == std::string::npos;
  });
  if (empty > 0)
    text += fmt::format("{} of {} answers are empty, which counts as wrong.\n", empty,
                        scores.samples.size());
  return text;
}

std::string table(const RetrievalScores& scores) {
  std::string text = fmt::format("Expected strings found, in % [95 % interval]; {}.\n\n{:<14}",
                                 samples_words(scores), "task");
  const auto add = [&](const std::string& name, const std::vector<ScoreInterval>& row) {
    text += fmt::format("{:<14}", name);
    for (const ScoreInterval& score : row) text += fmt::format("{:>17}", cell(score));
    text += '\n';
  };
  for (const int64_t length : scores.lengths) text += fmt::format("{:>17}", length);
  text += '\n';
  for (size_t n = 0; n < scores.tasks.size(); ++n) add(scores.tasks[n], scores.by_task[n]);
  add(kMeanOfTasks, scores.over_tasks);
  return text + "\n" + effective_words(scores) + "\n" + missing_words(scores);
}

std::string json_text(const RetrievalScores& scores, const json& manifest, const json& facts,
                      const std::string& command) {
  json tasks = json::array(), depths = json::array();
  for (size_t n = 0; n < scores.tasks.size(); ++n)
    tasks.push_back(
        {{"task", scores.tasks[n]}, {"lengths", lengths_json(scores, scores.by_task[n])}});
  for (size_t row = 0; row < scores.depths.size(); ++row) {
    json lengths = json::array();
    for (size_t n = 0; n < scores.lengths.size(); ++n)
      lengths.push_back({{"length", scores.lengths[n]}, {"mean", scores.by_depth[row][n]}});
    depths.push_back({{"depth", scores.depths[row]}, {"lengths", lengths}});
  }
  json without = json::array();
  for (const Unscored& found : unscored(scores))
    without.push_back({{"length", found.length}, {"count", found.count}, {"first", found.reason}});
  json samples = json::array();
  for (const RetrievalSample& sample : scores.samples) {
    samples.push_back({{"task", sample.task},
                       {"length", sample.length},
                       {"depth", sample.depth ? json(*sample.depth) : json()},
                       {"sample", sample.sample},
                       {"tokens", sample.tokens},
                       {"score", sample.score ? json(*sample.score) : json()},
                       {"expected", sample.expected},
                       {"answer", sample.answer}});
    if (!sample.score) samples.back()["unscored"] = sample.unscored;
  }
  const EffectiveLength& found = scores.effective;
  const json out = {{"command", command},
                    {"settings", manifest},
                    {"facts", facts},
                    {"tasks", tasks},
                    {"mean_of_tasks", lengths_json(scores, scores.over_tasks)},
                    {"depths", depths},
                    {"unscored", without},
                    {"samples", samples},
                    {"threshold", kHandlesFrom},
                    {"effective_length", found.length},
                    {"effective_length_low", found.low},
                    {"effective_length_high", found.high}};
  return out.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string samples_csv(const RetrievalScores& scores) {
  std::string csv = "task,length,depth,sample,tokens,score,expected,answer\n";
  for (const RetrievalSample& sample : scores.samples) {
    csv += fmt::format("{},{},{},{},{},{},{},{}\n", chart::csv_field(sample.task), sample.length,
                       sample.depth ? fmt::format("{}", *sample.depth) : "", sample.sample,
                       sample.tokens, sample.score ? fmt::format("{}", *sample.score) : "",
                       chart::csv_field(joined(sample.expected, "; ")),
                       chart::csv_field(sample.answer));
  }
  return csv;
}

chart::Report report_page(const RetrievalScores& scores, const json& manifest, const json& facts,
                          const std::string& command) {
  chart::Report page;
  page.title = "Retrieval: " + model_words(manifest);
  page.lead =
      fmt::format("{} Measured with {}.{} {}", effective_words(scores), positions_words(manifest),
                  trained_words(scores, manifest), missing_words(scores));
  if (!scores.depths.empty()) page.opening.blocks.emplace_back(depth_map(scores));
  page.sections.push_back({"Tasks", {task_map(scores), score_table(scores)}});
  page.sections.back().blocks.emplace_back(chart::Details{
      .summary = "How to read the scores",
      .text = "- A score is the share of the expected strings that the answer contains.\n"
              "- The mean of tasks weighs all tasks alike. It is green if its interval lies above "
              "the threshold, and red if below.\n"
              "- The threshold is that of RULER (Hsieh et al. 2024), the score of Llama2-7B at "
              "4096 tokens in 13 tasks; these are five simpler ones, so the effective lengths of "
              "RULER's table are others."});
  page.sections.push_back(wrong_answers(scores));
  chart::NamedValues settings;
  add_settings(manifest, settings);
  add_settings(facts, settings);
  page.sections.push_back({"Settings and data",
                           {std::move(settings), chart::Download{.file = "retrieval.csv",
                                                                 .media_type = "text/csv",
                                                                 .content = samples_csv(scores)}}});
  page.footer = fmt::format("sextant {}: {}", version(), command);
  return page;
}

chart::Report retrieval_page(const json& content, const std::string& where) {
  const JsonFields file(content, where);
  if (!file.has("samples"))
    file.refuse("samples", "those of sextant retrieve, which older versions left out");
  std::vector<RetrievalSample> samples;
  for (const json& sample : file.at("samples"))
    samples.push_back(retrieval_sample(JsonFields(sample, where + ": samples")));
  return report_page(retrieval_scores(std::move(samples)), file.object("settings"),
                     file.value("facts"), file.optional_string("command").value_or(""));
}

}  // namespace sextant::lab
