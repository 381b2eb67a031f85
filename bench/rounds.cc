#include "bench/rounds.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sextant::bench {
namespace {

// Seconds per call, the mean of `repeats` calls.
double timed(const Contestant& contestant, int repeats) {
  double sum = 0;
  for (int n = 0; n < repeats; ++n) {
    contestant.before();
    const auto start = std::chrono::steady_clock::now();
    contestant.call();
    sum += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return sum / repeats;
}

double median_of(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const size_t half = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

}  // namespace

double Seconds::least() const { return *std::min_element(rounds.begin(), rounds.end()); }

double Seconds::median() const { return median_of(rounds); }

double median_ratio(const Seconds& a, const Seconds& b) {
  std::vector<double> ratios;
  for (size_t n = 0; n < a.rounds.size(); ++n) ratios.push_back(a.rounds[n] / b.rounds[n]);
  return median_of(std::move(ratios));
}

std::vector<Seconds> take_turns(const std::vector<Contestant>& contestants,
                                const RoundOptions& options) {
  constexpr double kMostRepeats = 1000;
  std::vector<int> repeats;
  for (const Contestant& contestant : contestants) {
    timed(contestant, 1);
    repeats.push_back(static_cast<int>(
        std::clamp(options.least_seconds / timed(contestant, 1), 1.0, kMostRepeats)));
  }
  std::vector<Seconds> result(contestants.size());
  for (int round = 0; round < options.rounds; ++round)
    for (size_t n = 0; n < contestants.size(); ++n)
      result[n].rounds.push_back(timed(contestants[n], repeats[n]));
  return result;
}

}  // namespace sextant::bench
