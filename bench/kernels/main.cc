// bench_kernels: what the steps of plain attention cost on one core, each alone and one after the other,
// as shares of the multiply-add peak. The row "all" is what the forward pass could reach at most, with
// nothing lost to masks, packing and tasks.
//
// Where the other thread of a core is busy, be it another machine's, steps lose more than the peak does,
// for they issue more instructions for each multiplication: so medians are given beside the best.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "bench/fma_peak.h"
#include "bench/kernels/steps.h"
#include "bench/rounds.h"
#include "sextant/attention/executor.h"
#include "sextant/error.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

struct Options {
  std::vector<int64_t> head_sizes = {64, 128};
  RoundOptions rounds = {.rounds = 50, .least_seconds = 0.002};
};

struct Step {
  const char* name;
  int products;  // how many its time is compared with
  Contestant contestant;
};

void time_steps(const Options& o, int64_t columns) {
  if (columns % cpu::kLanes != 0)
    fail("bench: head-sizes: expected multiples of 16, but got " + std::to_string(columns));
  constexpr int64_t kStrips = Steps::kQueries / cpu::kStrip;
  static_assert(kStrips * cpu::kStrip == Steps::kQueries);
  Steps steps(columns);
  const auto strips = [&](auto one) {
    return Contestant{[&steps, one] {
      for (int64_t n = 0; n < kStrips; ++n) {
        one(steps);
        steps.next();
      }
    }};
  };
  const Step list[] = {
      {"q k", 1, strips([](Steps& s) { s.score(); })},
      {"softmax", 0, strips([](Steps& s) { s.soften(); })},
      {"p v", 1, strips([](Steps& s) { s.mix(); })},
      {"merge", 0, strips([](Steps& s) { s.merge(); })},
      {"all", 2, strips([](Steps& s) {
         s.score();
         s.soften();
         s.mix();
         s.merge();
       })},
  };
  std::vector<Contestant> contestants;
  for (const Step& step : list) contestants.push_back(step.contestant);
  const double peak = fma_peak(serial_executor()).operations;
  const std::vector<Seconds> times = take_turns(contestants, o.rounds);
  const double strip_count = static_cast<double>(kStrips);
  const double ideal = strip_count * steps.operations_of_product() / peak;  // seconds of a product
  fmt::print("\nheads of {}: FMA peak of one core {:.0f} GFLOP/s\n", columns, peak / 1e9);
  fmt::print("{:<9} {:>16} {:>17}\n", "", "us of a strip", "of peak");
  fmt::print("{:<9} {:>8} {:>7} {:>9} {:>7}\n", "", "least", "median", "best", "median");
  for (size_t n = 0; n < times.size(); ++n) {
    const double least = times[n].least(), median = times[n].median();
    fmt::print("{:<9} {:>8.2f} {:>7.2f}", list[n].name, 1e6 * least / strip_count,
               1e6 * median / strip_count);
    if (list[n].products > 0)
      fmt::print(" {:>8.0f}% {:>6.0f}%", 100 * list[n].products * ideal / least,
                 100 * list[n].products * ideal / median);
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What the steps of plain attention cost on one core");
  Options options;
  app.add_option("--head-sizes,--d", options.head_sizes, "columns of a head, multiples of 16")
      ->check(CLI::Range(16, 1024))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--rounds", options.rounds.rounds, "rounds")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    for (const int64_t columns : options.head_sizes) time_steps(options, columns);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
