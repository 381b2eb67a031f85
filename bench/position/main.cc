// bench_position: cost of cos and sin of the positions of a sequence, in nanoseconds per pair of a
// position and a frequency, on one core.
//
// Our values are correct to 0.53 ulp at any position. The same rounds time glibc's sincosf of a
// phase that was rounded to float32, and a table of cos and sin that is read from memory, which is
// the cost of using a cache of angles.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/position/peers.h"
#include "bench/program.h"
#include "bench/rounds.h"
#include "sextant/attention/rotary/cos_sin.h"
#include "sextant/base/error.h"
#include "sextant/position/spectrum.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

struct Options {
  std::vector<int64_t> lengths = {2048, 8192};
  int64_t first = 0, dim = 128;
  RoundOptions rounds = {.rounds = 15, .least_seconds = 0.01};
  std::string json;
};

void declare(CLI::App& app, Options& o) {
  app.add_option("--lengths,--n", o.lengths, "positions, a multiple of 16")
      ->check(CLI::Range(16, 1 << 22))
      ->delimiter(',');
  app.add_option("--first", o.first, "the first position")->check(CLI::Range(0LL, 1LL << 31));
  app.add_option("--dim", o.dim, "rotated columns, two for each frequency")
      ->check(CLI::Range(2, 1024));
  app.add_option("--rounds", o.rounds.rounds, "rounds")->check(CLI::Range(1, 1000));
  app.add_option("--json", o.json, "write all numbers to this file");
  app.get_formatter()->column_width(24);
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
}

nlohmann::json time_length(const Options& o, int64_t length) {
  constexpr int64_t kTable = int64_t{1} << 26;  // 512 MB of cos and sin
  const Spectrum spectrum = rotary({.dim = o.dim});
  const Rotation exact = rotation(spectrum);
  const int64_t pairs = static_cast<int64_t>(exact.pairs.size());
  std::vector<float> cos(static_cast<size_t>(length)), sin(cos.size());
  Table table(kTable);
  volatile float seen = 0;  // keeps the compiler from removing the reads
  const PositionRun text = {.first = o.first, .count = length};
  const Contestant ours = {[&] {
    for (const Rotation::Pair& pair : exact.pairs)
      cos_sin_of_positions(pair.frequency, {}, {&text, 1}, cos.data(), sin.data());
  }};
  const Contestant glibc = {[&] {
    for (const Spectrum::Pair& pair : spectrum.pairs)
      by_sincosf(static_cast<float>(static_cast<double>(pair.frequency)), o.first, length,
                 cos.data(), sin.data());
  }};
  const Contestant read = {[&] {
    for (int64_t n = 0; n < pairs; ++n) seen = table.sum_of_next(length);
  }};
  const std::vector<Seconds> times = take_turns({ours, glibc, read}, o.rounds);
  const char* const names[] = {"sextant", "glibc sincosf", "a table, read"};
  const double count = static_cast<double>(length * pairs);
  nlohmann::json measured{{"length", length}, {"pairs", pairs}};
  for (size_t n = 0; n < times.size(); ++n) {
    fmt::print("{:<10} {:<14} {:>8.3f} {:>8.3f} {:>10.2f} {:>7.2f}\n", length, names[n],
               1e9 * times[n].least() / count, 1e9 * times[n].median() / count,
               times[n].least() / times[0].least(), median_ratio(times[n], times[0]));
    nlohmann::json& rounds = measured["ns_of_pair"][names[n]];
    for (const double seconds : times[n].rounds) rounds.push_back(1e9 * seconds / count);
  }
  return measured;
}

nlohmann::json run(const Options& o) {
  fmt::print("{} frequencies from position {}; one core, {} rounds\n\n", o.dim / 2, o.first,
             o.rounds.rounds);
  fmt::print("{:<10} {:<14} {:>17} {:>18}\n", "", "", "ns for a pair", "times ours");
  fmt::print("{:<10} {:<14} {:>8} {:>8} {:>10} {:>7}\n", "positions", "", "least", "median",
             "least", "median");
  nlohmann::json all = nlohmann::json::array();
  for (const int64_t length : o.lengths) {
    if (length % 16 != 0)
      fail("bench: lengths: expected multiples of 16, but got " + std::to_string(length));
    all.push_back(time_length(o, length));
    std::fflush(stdout);
  }
  return {{"first", o.first}, {"dim", o.dim}, {"measured", all}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time of cos and sin of positions beside glibc's and beside a table's");
  Options options;
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  return run_program(options.json, [&] { return run(options); });
}
