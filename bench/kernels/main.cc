// bench_kernels: cost of the steps of attention on one core, each alone and one after the other, as
// fractions of the multiply-add peak. The rows "all" are upper bounds of the passes, without the
// cost of masks, packing and tasks. The last line is a lower bound of the forward pass with a row
// for each distance, as a multiple of the plain one.
//
// If the other hardware thread of the core is busy, even with another virtual machine, the steps
// lose more than the peak does, since they issue more instructions per multiplication. Medians are
// therefore printed beside the best times.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/fma_peak.h"
#include "bench/kernels/steps.h"
#include "bench/program.h"
#include "bench/rounds.h"
#include "sextant/base/error.h"
#include "sextant/base/executor.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

struct Options {
  std::vector<int64_t> head_sizes = {64, 128};
  RoundOptions rounds = {.rounds = 50, .least_seconds = 0.002};
  std::string json;
};

struct Timed {
  Steps steps;
  std::vector<Seconds> times = {};  // per step, of one part
};

// Times the steps of all groups in the same rounds.
std::vector<Timed> time_all(std::vector<Steps> groups, const RoundOptions& options) {
  std::vector<Contestant> contestants;
  for (const Steps& steps : groups)
    for (const Step& step : steps.list) contestants.push_back({step.call});
  const std::vector<Seconds> times = take_turns(contestants, options);
  std::vector<Timed> all;
  auto next = times.begin();
  for (Steps& steps : groups) {
    Timed& timed = all.emplace_back(Timed{std::move(steps)});
    for (size_t n = 0; n < timed.steps.list.size(); ++n) {
      Seconds& time = timed.times.emplace_back(*next++);
      for (double& seconds : time.rounds) seconds /= static_cast<double>(timed.steps.parts);
    }
  }
  return all;
}

void print_steps(const Timed& timed, double peak) {
  fmt::print("{}, a {}\n", timed.steps.name, timed.steps.part);
  for (size_t n = 0; n < timed.times.size(); ++n) {
    const Step& step = timed.steps.list[n];
    const double least = timed.times[n].least(), median = timed.times[n].median();
    const double ideal = step.operations / peak;
    fmt::print("  {:<13} {:>8.2f} {:>8.2f}", step.name, 1e6 * least, 1e6 * median);
    if (ideal > 0) fmt::print(" {:>9.0f}% {:>6.0f}%", 100 * ideal / least, 100 * ideal / median);
    fmt::print("\n");
  }
}

Seconds sum_of(const std::vector<Seconds>& times) {
  Seconds sum = times[0];
  for (size_t n = 1; n < times.size(); ++n)
    for (size_t round = 0; round < sum.rounds.size(); ++round)
      sum.rounds[round] += times[n].rounds[round];
  return sum;
}

// The sum of the forward steps with q A added and q k replaced by q k + q A.
Seconds with_table(std::vector<Seconds> forward, const Timed& table) {
  forward[0] = table.times[1];
  forward.push_back(table.times[0]);
  return sum_of(forward);
}

void time_head_size(const Options& o, int64_t columns, nlohmann::json& measured) {
  const double peak = fma_peak(serial_executor()).operations;
  const std::vector<Timed> all = time_all({forward_steps(columns), backward_steps(columns),
                                           every_distance_steps(columns), far_tile_steps(columns)},
                                          o.rounds);
  fmt::print("\nheads of {}: FMA peak of one core {:.0f} GFLOP/s\n", columns, peak / 1e9);
  fmt::print("{:<15} {:>17} {:>18}\n", "", "us", "of peak");
  fmt::print("{:<15} {:>8} {:>8} {:>10} {:>7}\n", "", "least", "median", "best", "median");
  for (const Timed& timed : all) {
    print_steps(timed, peak);
    for (size_t n = 0; n < timed.times.size(); ++n) {
      const Step& step = timed.steps.list[n];
      nlohmann::json& json = measured.emplace_back(to_json(timed.times[n]));
      json.update({{"head_dim", columns},
                   {"fma_peak", peak},
                   {"kernel", timed.steps.name},
                   {"part", timed.steps.part},
                   {"step", step.name},
                   {"operations", step.operations}});
    }
  }
  const std::vector<Seconds> forward(all[0].times.begin(), all[0].times.end() - 1);
  const Seconds plain = sum_of(forward), every_distance = with_table(forward, all[2]);
  fmt::print("forward with a row for each distance, times plain {:.3f}, median {:.3f}\n",
             every_distance.least() / plain.least(), median_ratio(every_distance, plain));
  std::fflush(stdout);
}

nlohmann::json run(const Options& o) {
  for (const int64_t columns : o.head_sizes)
    if (columns % cpu::kLanes != 0)
      fail("bench: head-sizes: expected multiples of 16, but got " + std::to_string(columns));
  nlohmann::json measured = nlohmann::json::array();
  for (const int64_t columns : o.head_sizes) time_head_size(o, columns, measured);
  return {{"rounds", o.rounds.rounds}, {"measured", measured}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What the steps of attention cost on one core");
  Options options;
  app.add_option("--head-sizes,--d", options.head_sizes, "columns of a head, multiples of 16")
      ->check(CLI::Range(16, 1024))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--rounds", options.rounds.rounds, "rounds")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--json", options.json, "write all numbers to this file");
  CLI11_PARSE(app, argc, argv);
  return run_program(options.json, [&] { return run(options); });
}
