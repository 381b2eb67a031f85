// The results of a survey as tables: mean and 95 % interval over seeds, method by method.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/report/interval.h"
#include "sextant/lab/report/result.h"

namespace sextant::lab {

// All seeds of one method.
struct MethodResult {
  std::string label;
  std::string reads;  // the label of the method whose weights it is tested with; or empty
  std::vector<ArmResult> seeds;  // on text; those that did not diverge
  std::vector<ArmResult> pairs;  // on retrieval; likewise
  int64_t diverged = 0;          // on text

  // The measure `what` at lengths[index], over seeds.
  SeedMean at(Mean AtLength::*what, size_t index) const;
  // Entropy or span of attention at lengths[index], over layers and seeds.
  SeedMean attention(double AttentionAt::*what, size_t index) const;
  // Share found; none if it was not asked so.
  std::optional<SeedMean> found(int64_t length, int64_t distance) const;
};

// In the order of the labels' first arms. Arms without a result are left out.
std::vector<MethodResult> by_method(std::span<const ArmResult> results);

// The method of that label, if it was trained or tested on text.
const MethodResult* find_method(std::span<const MethodResult> methods, const std::string& label);

// By how much the sliding loss of the longest windows is above that at L: for a method that reads
// another's weights, above the other's, since its cost on short sequences counts, too.
SeedMean change(const MethodResult& method, std::span<const MethodResult> methods,
                const Settings& settings);

// Nats per byte by which the last bytes of the longest windows may be worse than at L. Between the
// two: XPOS, +0.23. Seeds move a change by 0.001 where a method holds and by 0.1 where it breaks.
inline constexpr double kHoldsBelow = 0.1;
inline constexpr double kBreaksAbove = 0.25;

// "holds", "drifts" or "breaks", by its change; "diverged".
std::string verdict(const MethodResult& method, std::span<const MethodResult> methods,
                    const Settings& settings);

// Where retrieval is asked: half a training length back, and at the beginning of a text.
int64_t near_distance(const RetrievalOptions& options);
int64_t far_distance(int64_t length, const RetrievalOptions& options);

struct FoundTable {
  struct Column {
    std::string name, unit;
    bool sign = false;  // shown with + or -
    int decimals = 3;
  };
  struct Row {
    std::string label;
    std::vector<std::optional<SeedMean>> values;  // of each column
    std::string word;                             // "holds"; or empty
    std::string remark;                           // "(1 of 3 diverged)"; or empty
  };
  std::string caption;
  std::string unit;  // shared by the columns that have none of their own; or empty
  std::vector<Column> columns;
  std::vector<Row> rows;
  bool in_report_only = false;  // too much for a terminal
};

// Sliding loss, loss and retrieval of the methods that were trained; a table for each method whose
// weights others read; attention of all methods.
std::vector<FoundTable> tables(std::span<const MethodResult> methods, const Settings& settings);

// All of them as plain text.
std::string table(std::span<const MethodResult> methods, const Settings& settings);

// "method,seed,measure,length,position,value": every number of every arm. position: the first of a
// bin; for "training" the bytes read, for "retrieval" the distance, for "attention_..." the layer.
std::string results_csv(std::span<const ArmResult> results, const Settings& settings);

// One measure of one method over its seeds.
struct Summary {
  std::string method, measure;
  int64_t length = 0;
  std::optional<int64_t> distance;  // of retrieval
  size_t seeds = 0;
  SeedMean value;
};
std::vector<Summary> summary(std::span<const MethodResult> methods);

// "method,measure,length,distance,seeds,mean,half_interval95"
std::string summary_csv(std::span<const MethodResult> methods);

// "17.1 thousand bytes per second and worker"; "" if nothing was trained.
std::string speed(std::span<const ArmResult> results, const Settings& settings);

// A caveat that belongs to such a table.
extern const char* const kCaveat;

}  // namespace sextant::lab
