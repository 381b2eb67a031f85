// bench_reading: how much memory gives while a core multiplies what it reads, in nanoseconds for each KB
// and thread.
//
// Decoding reads each key and value once and multiplies each of their numbers by one of every query head that
// shares them. So this is how fast decoding could be, were it nothing but its multiply-adds.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/program.h"
#include "bench/reading/read_and_multiply.h"
#include "bench/rounds.h"
#include "sextant/attention/executor.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

struct Options {
  int threads = 2;
  RoundOptions rounds = {.rounds = 9};
  std::string json;
};

// What the numbers of a thread take: 1 KB is 256 of them.
void print_row(int multiply_adds, const Seconds& near, const Seconds& far, const Seconds& alone,
               double kilobytes) {
  const auto ns = [&](double seconds) { return 1e9 * seconds / kilobytes; };
  fmt::print("{:>13} {:>8.1f} {:>8.1f} {:>10.1f} {:>8.1f} {:>9.0f}% {:>7.0f}%\n", multiply_adds,
             ns(near.least()), ns(near.median()), ns(far.least()), ns(far.median()),
             100 * alone.least() / far.least(), 100 / median_ratio(far, alone));
}

nlohmann::json run(const Options& o) {
  constexpr int64_t kNumbers = int64_t{1} << 26, kMargin = 1 << 16;  // 256 MB
  const int64_t share = kNumbers / o.threads / 1024 * 1024;          // of a thread
  const std::vector<float> numbers(static_cast<size_t>(share * o.threads + kMargin), 1e-3F);
  const auto executor = make_thread_pool(o.threads);
  std::vector<float> sums(static_cast<size_t>(o.threads));
  std::vector<Contestant> contestants;
  for (const int multiply_adds : kMultiplyAdds)
    for (const bool near : {true, false})
      contestants.push_back({[&, multiply_adds, near] {
        executor->run(o.threads, [&](int64_t n, int) {
          sums[static_cast<size_t>(n)] +=
              read_and_multiply(numbers.data() + n * share, share, near, multiply_adds);
        });
      }});
  const std::vector<Seconds> times = take_turns(contestants, o.rounds);
  fmt::print("{} threads, {} rounds; ns of a thread for each KB\n\n", o.threads, o.rounds.rounds);
  fmt::print("{:>13} {:>17} {:>19} {:>18}\n", "multiply-adds", "from the L1 cache", "from memory",
             "of reading alone");
  fmt::print("{:>13} {:>8} {:>8} {:>10} {:>8} {:>10} {:>8}\n", "of a number", "least", "median",
             "least", "median", "least", "median");
  const double kilobytes = static_cast<double>(share) / 256;
  nlohmann::json measured = nlohmann::json::array();
  for (size_t n = 0; n < kMultiplyAdds.size(); ++n) {
    const Seconds &near = times[2 * n], &far = times[2 * n + 1];
    print_row(kMultiplyAdds[n], near, far, times[1], kilobytes);
    measured.push_back(
        {{"multiply_adds", kMultiplyAdds[n]}, {"near", to_json(near)}, {"far", to_json(far)}});
  }
  return {{"threads", o.threads}, {"kilobytes", kilobytes}, {"measured", measured}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Reading memory beside multiply-adds");
  Options options;
  app.add_option("--threads", options.threads, "threads, each with numbers of its own")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds.rounds, "rounds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--json", options.json, "write all numbers to this file");
  CLI11_PARSE(app, argc, argv);
  return run_program(options.json, [&] { return run(options); });
}
