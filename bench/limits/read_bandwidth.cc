// bench_read_bandwidth: memory bandwidth while a core multiplies what it reads, in nanoseconds per
// KB and thread.
//
// Decoding reads each key and value once, and multiplies each element once for every query head
// that shares it. The result is the speed of decoding if it consisted of its multiply-adds alone.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/limits/read_and_multiply.h"
#include "bench/program.h"
#include "bench/rounds.h"
#include "sextant/base/aligned_memory.h"
#include "sextant/base/executor.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

struct Options {
  int threads = 2;
  RoundOptions rounds = {.rounds = 9};
  std::string json;
};

// The times of loops with the same number of multiply-adds per value.
struct Row {
  int multiply_adds;
  Seconds near, far, in_step;  // far: the fastest of the sequential access patterns
};

// kilobytes: per thread; 1 KB is 256 values.
void print_row(const Row& row, const Seconds& alone, double kilobytes) {
  const auto ns = [&](const Seconds& x) {
    return fmt::format("{:>8.1f} {:>8.1f}", 1e9 * x.least() / kilobytes,
                       1e9 * x.median() / kilobytes);
  };
  const auto of_reading = [&](const Seconds& x) {
    return fmt::format("{:>5.0f}% {:>5.0f}%", 100 * alone.least() / x.least(),
                       100 / median_ratio(x, alone));
  };
  fmt::print("{:>13} {:>18} {:>20} {:>13} {:>20} {:>13}\n", row.multiply_adds, ns(row.near),
             ns(row.far), of_reading(row.far), ns(row.in_step), of_reading(row.in_step));
}

nlohmann::json run(const Options& o) {
  constexpr int64_t kValues = int64_t{1} << 26, kMargin = 1 << 16;  // 256 MB
  const int64_t share = kValues / o.threads / 8192 * 8192;          // values per thread
  const std::vector<float, LinesAllocator<float>> values(
      static_cast<size_t>(share * o.threads + kMargin), 1e-3F);
  const auto executor = make_thread_pool(o.threads);
  std::vector<float> sums(static_cast<size_t>(o.threads));
  std::vector<Contestant> contestants;
  const auto add = [&](int multiply_adds, bool near, size_t pattern) {
    contestants.push_back({[&, multiply_adds, near, pattern] {
      executor->run(o.threads, [&](int64_t n, int) {
        sums[static_cast<size_t>(n)] +=
            read_and_multiply(values.data() + n * share, share, near, multiply_adds, pattern);
      });
    }});
  };
  for (const int multiply_adds : kMultiplyAdds) {
    add(multiply_adds, true, 0);
    for (size_t pattern = 0; pattern < kAccessPatterns.size(); ++pattern)
      add(multiply_adds, false, pattern);
  }
  const std::vector<Seconds> times = take_turns(contestants, o.rounds);
  std::vector<Row> rows;
  for (size_t n = 0; n < kMultiplyAdds.size(); ++n) {
    const auto first = times.begin() + static_cast<ptrdiff_t>(n * (1 + kAccessPatterns.size()));
    Row row = {kMultiplyAdds[n], *first, {}, {}};
    for (size_t pattern = 0; pattern < kAccessPatterns.size(); ++pattern) {
      const Seconds& far = first[static_cast<ptrdiff_t>(1 + pattern)];
      if (kAccessPatterns[pattern].in_step)
        row.in_step = far;
      else if (row.far.rounds.empty() || far.least() < row.far.least())
        row.far = far;
    }
    rows.push_back(row);
  }
  const double kilobytes = static_cast<double>(share) / 256;
  fmt::print("{} threads, {} rounds; ns of a thread for each KB, least and median\n\n", o.threads,
             o.rounds.rounds);
  fmt::print("{:>13} {:>18} {:>20} {:>13} {:>20} {:>13}\n", "multiply-adds", "from the L1 cache",
             "from memory", "of reading", "sixteen rows in step", "of reading");
  nlohmann::json measured = nlohmann::json::array();
  for (const Row& row : rows) {
    print_row(row, rows.front().far, kilobytes);
    measured.push_back({{"multiply_adds", row.multiply_adds},
                        {"near", to_json(row.near)},
                        {"far", to_json(row.far)},
                        {"in_step", to_json(row.in_step)}});
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
