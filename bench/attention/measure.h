// Measures our attention beside its peers: the plain kind, which shows the cost of a term,
// libtorch's operators and ggml's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "bench/attention/workload.h"
#include "bench/fma_peak.h"
#include "bench/rounds.h"

namespace sextant::bench {

struct Side {
  Seconds time = {};
  // Forward: without gradients. Backward: of both passes together.
  std::optional<int64_t> peak_bytes = {};
};

// One pass of one kind.
struct Measured {
  std::string kind = {}, pass = {};  // "forward" or "backward"
  Side ours = {};
  std::optional<Seconds> plain = {};  // our time of the kind Kind::beside
  std::optional<Side> eager = {};
  std::optional<Seconds> ggml = {};  // forward, for kinds that ggml supports
  // Passes that are bound by memory: reading the keys and values alone, with the best number of
  // concurrent streams.
  std::optional<Seconds> reading = {};
  // Such passes without rotated keys: their two products alone (multiply_cached()).
  std::optional<Seconds> products = {};
  // All other passes: the same number of operations at the peak.
  std::optional<Seconds> multiplying = {};
  double operations = 0;  // of the products of plain attention over the visible pairs
  double bytes = 0;       // of operands and result, if they bound the time; otherwise 0
};

struct MeasureOptions {
  RoundOptions rounds = {};
  // Times libtorch's operators as well. Without them, agreement with libtorch is still checked, on
  // a sequence of at most 256 tokens.
  bool eager = true;
  bool ggml = false;     // times ggml's operators as well, if has_ggml()
  bool backward = true;  // false: the forward pass only
  // Runs multiply-adds at the peak of the backend's products for a while and returns the number of
  // operations.
  std::function<double(const Executor&)> at_peak = multiply_and_add;
};

// Throws Error if the results of ours and of a peer differ, since their times could then not be
// compared.
std::vector<Measured> measure(const Kind& kind, const Sizes& sizes, const Backend& backend,
                              const Executor& executor, const MeasureOptions& options);

}  // namespace sextant::bench
