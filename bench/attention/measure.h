// Rounds in which both sides take turns, so that whatever else the machine does hits them alike.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/attention/workload.h"

namespace sextant::bench {

struct Seconds {
  std::vector<double> rounds = {};

  double least() const;
  double median() const;
};

struct Side {
  Seconds time = {};
  std::optional<int64_t> peak_bytes =
      {};  // forward: without gradients; backward: forward and backward
};

// One pass of one kind.
struct Measured {
  std::string kind = {}, pass = {};  // "forward" or "backward"
  Side ours = {}, eager = {};
  double operations = 0;  // of plain attention's products over the pairs that are seen
  double bytes = 0;       // of operands and result, if they bound the time; or 0
};

struct MeasureOptions {
  int rounds = 5;
  double least_seconds = 0.02;  // of a timing; shorter calls are repeated
};

// Throws Error if the two do not agree: the time of something else is worth nothing.
std::vector<Measured> measure(Workload& workload, const Backend& backend, const Executor& executor,
                              const MeasureOptions& options);

}  // namespace sextant::bench
