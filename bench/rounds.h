// Interleaved timing of several calls: each round runs all of them, so that other load on the
// machine affects them alike.
#pragma once

#include <functional>
#include <vector>

namespace sextant::bench {

struct Seconds {
  std::vector<double> rounds = {};  // seconds of one call, one value per round

  double least() const;
  double median() const;
};

// The median over the rounds of the ratio a / b; in a round both met the same load of the machine.
double median_ratio(const Seconds& a, const Seconds& b);

// `before` each call is not timed.
struct Contestant {
  std::function<void()> call, before = [] {};
};

struct RoundOptions {
  int rounds = 5;
  double least_seconds = 0.02;  // per timing; shorter calls are repeated, at most 1000 times
};

// The seconds of each contestant. Each is called once before the first timing, since the first call
// has cold caches and touches new memory.
std::vector<Seconds> take_turns(const std::vector<Contestant>& contestants,
                                const RoundOptions& options);

}  // namespace sextant::bench
