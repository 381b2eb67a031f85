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
  std::string reads;             // label of the method whose weights it is tested with, or empty
  std::vector<ArmResult> seeds;  // on text, without the diverged ones
  std::vector<ArmResult> pairs;  // on retrieval, without the diverged ones
  int64_t diverged = 0;          // number of diverged arms on text

  // Mean over seeds of the measure `what` at lengths[index].
  SeedMean at(Mean AtLength::*what, size_t index) const;
  // Mean over layers and seeds of the entropy or span of attention at lengths[index].
  SeedMean attention(double AttentionAt::*what, size_t index) const;
  // Retrieval accuracy; nullopt if it was not tested at this length and distance.
  std::optional<SeedMean> found(int64_t length, int64_t distance) const;
};

// Groups results by label, in the order of each label's first arm. Arms without a result are left
// out.
std::vector<MethodResult> by_method(std::span<const ArmResult> results);

// The method with this label if it has a result on text that did not diverge, else nullptr.
const MethodResult* find_method(std::span<const MethodResult> methods, const std::string& label);

// Sliding loss at the longest length minus that at L. For a method that reads another method's
// weights, the loss of that other method at L is subtracted, so the cost of a stretch on short
// sequences counts, too.
SeedMean change(const MethodResult& method, std::span<const MethodResult> methods,
                const Settings& settings);

// Thresholds of change(), in nats per byte, for "holds" and "breaks". XPOS, with +0.23, lies
// between the two. Seeds move a change by 0.001 where a method holds and by 0.1 where it breaks.
inline constexpr double kHoldsBelow = 0.1;
inline constexpr double kBreaksAbove = 0.25;

// "holds", "drifts" or "breaks", by the method's change; "diverged" if no seed has a result.
std::string verdict(const MethodResult& method, std::span<const MethodResult> methods,
                    const Settings& settings);

// Distances of retrieval in the tables: about half a training length back, and at the beginning of
// a sequence.
int64_t near_distance(const RetrievalOptions& options);
int64_t far_distance(int64_t length, const RetrievalOptions& options);

struct FoundTable {
  struct Column {
    std::string name, unit;
    bool sign = false;  // printed with + or -
    int decimals = 3;
  };
  struct Row {
    std::string label;
    std::vector<std::optional<SeedMean>> values;  // one per column
    std::string word;                             // "holds", or empty
    std::string remark;                           // "(1 of 3 diverged)", or empty
  };
  std::string caption;
  std::string unit;  // of the columns that have none of their own, or empty
  std::vector<Column> columns;
  std::vector<Row> rows;
  bool in_report_only = false;  // too large for a terminal
};

// Sliding loss, loss and retrieval of the trained methods; one table of stretches for each method
// whose weights others read; attention of all methods.
std::vector<FoundTable> tables(std::span<const MethodResult> methods, const Settings& settings);

// All tables except those in the report only, as plain text.
std::string table(std::span<const MethodResult> methods, const Settings& settings);

// "method,seed,measure,length,position,value": every number of every arm. position is the first
// position of a bin; the bytes read for "training", the distance for "retrieval", the layer for
// "attention_...".
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

// "17.1 thousand bytes per second and worker"; empty if nothing was trained.
std::string speed(std::span<const ArmResult> results, const Settings& settings);

// A caveat to print with the tables.
extern const char* const kCaveat;

}  // namespace sextant::lab
