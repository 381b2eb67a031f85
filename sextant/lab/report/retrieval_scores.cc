// Samples are grouped by task, length and depth. Intervals of shares are those of Agresti and
// Coull; a mean over tasks gives each task the same weight.
#include "sextant/lab/report/retrieval_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/result/interval.h"

namespace sextant::lab {
namespace {

// Two right and two wrong answers are added (Agresti and Coull 1998). A share of expected strings
// varies at most as much as a right or wrong answer of the same mean.
ScoreInterval agresti_coull(double mean, size_t count) {
  const double guarded = static_cast<double>(count) + 4;
  const double share = (mean * static_cast<double>(count) + 2) / guarded;
  const double half = kNormal95 * std::sqrt(share * (1 - share) / guarded);
  return {.mean = mean, .low = std::max(0.0, share - half), .high = std::min(1.0, share + half)};
}

ScoreInterval interval_of(const RetrievalScores& found, const std::string& task, int64_t length) {
  std::vector<double> scores;
  size_t unscored = 0;
  for (const RetrievalSample& sample : found.samples) {
    if (sample.task != task || sample.length != length) continue;
    if (sample.score) scores.push_back(*sample.score);
    unscored += sample.score ? 0 : 1;
  }
  if (scores.empty() && unscored == 0)
    fail(fmt::format("retrieval: {} at {} tokens: expected samples, but got none", task, length));
  const auto with = [&](double score) {
    std::vector<double> all = scores;
    all.resize(all.size() + unscored, score);
    return score95(all);
  };
  return {.mean = scores.empty() ? std::nan("") : score95(scores).mean,
          .low = with(0).low,
          .high = with(1).high};
}

// Each task has the same weight, however many of its samples have this depth.
double mean_at_depth(const RetrievalScores& found, double depth, int64_t length) {
  double sum = 0;
  int64_t tasks = 0;
  for (const std::string& task : found.tasks) {
    double scores = 0;
    int64_t count = 0;
    for (const RetrievalSample& sample : found.samples) {
      if (sample.task != task || sample.length != length || sample.depth != depth) continue;
      if (!sample.score) continue;
      scores += *sample.score;
      ++count;
    }
    if (count == 0) continue;
    sum += scores / static_cast<double>(count);
    ++tasks;
  }
  return tasks == 0 ? std::nan("") : sum / static_cast<double>(tasks);
}

int64_t handled(const RetrievalScores& found, double ScoreInterval::*end) {
  int64_t length = 0;
  for (size_t n = 0; n < found.lengths.size(); ++n) {
    if (!(found.over_tasks[n].*end >= kHandlesFrom)) break;  // NaN is not enough
    length = found.lengths[n];
  }
  return length;
}

}  // namespace

ScoreInterval score95(std::span<const double> scores) {
  if (scores.empty()) fail("retrieval: expected scores, but got none");
  const MeanInterval student = interval95(scores);
  const bool answers =
      std::ranges::all_of(scores, [](double score) { return score == 0 || score == 1; });
  const bool equal =
      std::ranges::all_of(scores, [&](double score) { return score == scores.front(); });
  const double mean = std::clamp(student.mean, 0.0, 1.0);  // a sum of rounded parts may exceed 1
  if (answers || equal) return agresti_coull(mean, scores.size());
  return {.mean = mean, .low = std::max(0.0, student.low()), .high = std::min(1.0, student.high())};
}

ScoreInterval mean_of_tasks(std::span<const ScoreInterval> tasks) {
  if (tasks.empty()) fail("retrieval: expected tasks, but got none");
  if (!std::ranges::all_of(tasks, &ScoreInterval::has_mean)) return {.mean = std::nan("")};
  const auto count = static_cast<double>(tasks.size());
  double mean = 0, below = 0, above = 0;
  for (const ScoreInterval& task : tasks) {
    mean += task.mean / count;
    below += (task.mean - task.low) * (task.mean - task.low);
    above += (task.high - task.mean) * (task.high - task.mean);
  }
  return {.mean = mean,
          .low = std::max(0.0, mean - std::sqrt(below) / count),
          .high = std::min(1.0, mean + std::sqrt(above) / count)};
}

RetrievalSample retrieval_sample(const JsonFields& fields) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  RetrievalSample sample{.task = fields.string("task"),
                         .length = fields.integer("length", 0, kMost),
                         .depth = fields.optional_number("depth", 0, 1),
                         .sample = fields.integer("sample", 0, kMost),
                         .tokens = fields.integer("tokens", 0, kMost),
                         .answer = fields.string("answer")};
  fields.read("expected", sample.expected);
  if (fields.at("score").is_null())
    sample.unscored = fields.string("unscored");
  else
    sample.score = fields.number("score", 0, 1);
  return sample;
}

RetrievalScores retrieval_scores(std::vector<RetrievalSample> samples) {
  RetrievalScores found;
  std::set<int64_t> lengths;
  std::set<double> depths;
  std::map<std::tuple<std::string, int64_t, int64_t>, size_t> places;
  for (RetrievalSample& sample : samples) {
    const auto [place, is_new] =
        places.try_emplace({sample.task, sample.length, sample.sample}, found.samples.size());
    if (is_new) found.samples.emplace_back();
    found.samples[place->second] = std::move(sample);
  }
  for (const RetrievalSample& sample : found.samples) {
    lengths.insert(sample.length);
    if (sample.depth) depths.insert(*sample.depth);
    if (std::ranges::find(found.tasks, sample.task) == found.tasks.end())
      found.tasks.push_back(sample.task);
  }
  if (found.samples.empty()) fail("retrieval: expected records, but got none");
  const auto is_scored = [](const RetrievalSample& sample) { return sample.score.has_value(); };
  if (std::ranges::none_of(found.samples, is_scored))
    fail(fmt::format("retrieval: expected answers, but none of {} is a score; of the first: {}",
                     found.samples.size(), found.samples.front().unscored));
  found.lengths = {lengths.begin(), lengths.end()};
  found.depths = {depths.begin(), depths.end()};
  for (const std::string& task : found.tasks) {
    std::vector<ScoreInterval>& row = found.by_task.emplace_back();
    for (const int64_t length : found.lengths) row.push_back(interval_of(found, task, length));
  }
  for (size_t n = 0; n < found.lengths.size(); ++n) {
    std::vector<ScoreInterval> tasks;
    for (const std::vector<ScoreInterval>& row : found.by_task) tasks.push_back(row[n]);
    found.over_tasks.push_back(mean_of_tasks(tasks));
  }
  for (const double depth : found.depths) {
    std::vector<double>& row = found.by_depth.emplace_back();
    for (const int64_t length : found.lengths) row.push_back(mean_at_depth(found, depth, length));
  }
  found.effective = {.length = handled(found, &ScoreInterval::mean),
                     .low = handled(found, &ScoreInterval::low),
                     .high = handled(found, &ScoreInterval::high)};
  return found;
}

}  // namespace sextant::lab
