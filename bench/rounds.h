// Timing of several things beside each other: rounds in which each has its turn, so that whatever
// else the machine does hits them alike.
#pragma once

#include <functional>
#include <vector>

namespace sextant::bench {

struct Seconds {
  std::vector<double> rounds = {};  // of one call, in each round

  double least() const;
  double median() const;
};

// How many times as long `a` took as `b`: the median over the rounds, in each of which both met the
// same machine.
double median_ratio(const Seconds& a, const Seconds& b);

// `before` each call is not timed.
struct Contestant {
  std::function<void()> call, before = [] {};
};

struct RoundOptions {
  int rounds = 5;
  double least_seconds = 0.02;  // of a timing; shorter calls are repeated, at most 1000 times
};

// The seconds of each contestant. Each is called once before any clock starts, for the first call
// finds cold caches and touches new memory.
std::vector<Seconds> take_turns(const std::vector<Contestant>& contestants,
                                const RoundOptions& options);

}  // namespace sextant::bench
