// Retrieval scores of one model by task, length and depth, with 95 % intervals, and RULER's
// effective length (Hsieh et al. 2024). They are those of `sextant retrieve`; the retrieval of
// surveys is another task (data/retrieval_task.h), whose accuracies are in AtDistance.
//
// A sample's score is the share of the expected strings that its answer contains. The interval of a
// mean is Student's t, or that of Agresti and Coull 1998 if all scores are 0 or 1 or if all are
// equal: 20 right answers of 20 have the interval 0.81 to 1. Tasks are independent, so the interval
// of a mean over tasks follows from theirs; its ends are computed apart, as intervals near 0 and 1
// are not symmetric (Zou and Donner 2008).
//
// Replies that are no answers, since a server cut the prompt or the model spent all its tokens on
// reasoning, have no score. They widen the interval of their task: its ends are those with all of
// them wrong, and all of them right.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sextant {
class JsonFields;
}

namespace sextant::lab {

// A model handles a length if its mean over tasks is at least this: Llama2-7B at 4096 tokens
// (RULER, table 3).
inline constexpr double kHandlesFrom = 0.856;

struct RetrievalSample {
  std::string task;
  int64_t length = 0;           // asked for
  std::optional<double> depth;  // of the first needle: 0 at the start, 1 at the end
  int64_t sample = 0;
  int64_t tokens = 0;                // of the prompt
  std::optional<double> score = {};  // from 0 to 1; none if the reply is no answer
  std::vector<std::string> expected = {};
  std::string answer = {};
  std::string unscored = {};  // why there is no score
};

// A mean score and its 95 % interval, within 0 and 1. The mean is NaN without a score.
struct ScoreInterval {
  double mean = 0, low = 0, high = 1;

  bool has_mean() const { return mean == mean; }
};

// Throws Error if there are no scores.
ScoreInterval score95(std::span<const double> scores);
// The mean over independent tasks.
ScoreInterval mean_of_tasks(std::span<const ScoreInterval> tasks);

// The longest of the lengths that, like all shorter ones, has kHandlesFrom; 0: none.
struct EffectiveLength {
  int64_t length = 0;
  // The same for the lower and the upper ends of the intervals: the data do not decide between
  // these two lengths.
  int64_t low = 0, high = 0;

  bool decided() const { return low == high; }
};

struct RetrievalScores {
  std::vector<int64_t> lengths;                     // rising
  std::vector<std::string> tasks;                   // in the order of the records
  std::vector<double> depths;                       // rising; empty if no task has a depth
  std::vector<std::vector<ScoreInterval>> by_task;  // [task][length]
  std::vector<ScoreInterval> over_tasks;            // [length]
  // [depth][length], the mean over the tasks that have a depth; NaN without a sample.
  std::vector<std::vector<double>> by_depth;
  EffectiveLength effective;
  std::vector<RetrievalSample> samples;
};

// Reads the record of a sample that an arm of "retrieval" made (python/sextant/measure).
RetrievalSample retrieval_sample(const JsonFields& fields);

// Of two samples of one prompt the later counts. Throws Error if there are none, if none has a
// score, or if a task lacks a length.
RetrievalScores retrieval_scores(std::vector<RetrievalSample> samples);

}  // namespace sextant::lab
