// Ours beside its peers: the plain kind, which shows what a term costs, libtorch's operators and
// ggml's.
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
  std::optional<int64_t> peak_bytes =
      {};  // forward: without gradients; backward: forward and backward
};

// One pass of one kind.
struct Measured {
  std::string kind = {}, pass = {};  // "forward" or "backward"
  Side ours = {};
  std::optional<Seconds> plain = {};  // ours, of the kind that Kind::beside names
  std::optional<Side> eager = {};
  std::optional<Seconds> ggml = {};  // forward, of kinds that it has
  // Of a pass that memory bounds: reading keys and values and nothing else, from as many places at
  // once as is best.
  std::optional<Seconds> reading = {};
  // And, where no keys are turned, its two products and nothing else (multiply_cached()).
  std::optional<Seconds> products = {};
  // Of any other: as many operations at the peak, and nothing else.
  std::optional<Seconds> multiplying = {};
  double operations = 0;  // of plain attention's products over the pairs that are seen
  double bytes = 0;       // of operands and result, if they bound the time; or 0
};

struct MeasureOptions {
  RoundOptions rounds = {};
  // Beside libtorch's operators, too. Without them they are still asked whether they agree, about a
  // text of at most 256.
  bool eager = true;
  bool ggml = false;     // and beside ggml's, if has_ggml()
  bool backward = true;  // or forward only
  // Multiplies and adds for a while at the peak of the backend's products; returns how many
  // operations those were.
  std::function<double(const Executor&)> at_peak = multiply_and_add;
};

// Throws Error if ours and a peer do not agree: the time of something else is worth nothing.
std::vector<Measured> measure(const Kind& kind, const Sizes& sizes, const Backend& backend,
                              const Executor& executor, const MeasureOptions& options);

}  // namespace sextant::bench
