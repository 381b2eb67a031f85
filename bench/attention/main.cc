// bench_attention: time and peak memory of attention, forward and backward, for every kind of operand,
// beside the same thing written with libtorch's operators.
//
// GFLOP/s count the products of plain attention over the pairs that are seen: 2 of them forward, 5
// backward; what tables and turns cost beside shows as a lower figure. Memory is what the pass adds to
// the process at its highest: forward without gradients, backward forward and backward together.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/attention/fma_peak.h"
#include "bench/attention/report.h"
#include "sextant/error.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

struct Options {
  Sizes sizes;
  MeasureOptions measure;
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::string backend = "cpu";
  std::vector<std::string> only;
  std::string json;
  bool list = false;
};

void declare(CLI::App& app, Options& o) {
  app.add_option("--n", o.sizes.length, "queries and keys")->check(CLI::Range(1, 1 << 20));
  app.add_option("--d", o.sizes.head_dim, "columns of a head, even")->check(CLI::Range(2, 1024));
  app.add_option("--heads", o.sizes.heads, "heads")->check(CLI::Range(1, 1024));
  app.add_option("--batch", o.sizes.batch, "batch entries")->check(CLI::Range(1, 1024));
  app.add_option("--cache", o.sizes.cache, "keys of `decode`")->check(CLI::Range(1, 1 << 24));
  app.add_option("--threads", o.threads, "threads of either side")->check(CLI::Range(1, 1024));
  app.add_option("--rounds", o.measure.rounds, "rounds")->check(CLI::Range(1, 1000));
  app.add_option("--backend", o.backend, "the backend that is ours");
  app.add_option("--only", o.only, "these kinds only");
  app.add_option("--json", o.json, "write all numbers to this file");
  app.add_flag("--list", o.list, "list the kinds");
  app.get_formatter()->column_width(24);
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
}

void check_names(const std::vector<std::string>& only) {
  for (const std::string& name : only) {
    const auto is_it = [&](const Kind& kind) { return kind.name == name; };
    if (std::none_of(kinds().begin(), kinds().end(), is_it)) {
      fail("bench: only: expected a kind that --list lists, but got \"" + name + "\"");
    }
  }
}

void run(const Options& o) {
  check_names(o.only);
  at::set_num_threads(o.threads);
  at::manual_seed(1);
  const auto executor = make_thread_pool(o.threads);
  const Backend& backend = sextant::backend(o.backend);
  const double peak = fma_peak(*executor);
  fmt::print(
      "{} threads, FMA peak {:.0f} GFLOP/s; batch {}, {} heads of {}, {} queries and keys; {} "
      "rounds\n\n{}",
      o.threads, peak / 1e9, o.sizes.batch, o.sizes.heads, o.sizes.head_dim, o.sizes.length,
      o.measure.rounds, table_head());
  nlohmann::json all = nlohmann::json::array();
  for (const Kind& kind : kinds()) {
    if (!o.only.empty() && std::find(o.only.begin(), o.only.end(), kind.name) == o.only.end()) {
      continue;
    }
    const auto workload = kind.make(o.sizes);
    for (const Measured& measured : measure(*workload, backend, *executor, o.measure)) {
      fmt::print("{}", table_row(measured, peak));
      std::fflush(stdout);
      all.push_back(to_json(measured));
    }
  }
  if (o.json.empty()) return;
  std::ofstream out(o.json);
  out << nlohmann::json{{"threads", o.threads},
                        {"fma_peak", peak},
                        {"batch", o.sizes.batch},
                        {"heads", o.sizes.heads},
                        {"head_dim", o.sizes.head_dim},
                        {"length", o.sizes.length},
                        {"cache", o.sizes.cache},
                        {"backend", o.backend},
                        {"measured", all}}
             .dump(1)
      << "\n";
  out.close();
  if (!out) fail("bench: json: expected to write " + o.json + ", but got an error");
}

// libgomp's threads spin after each parallel region and take the cores from everyone else, libtorch's
// own BLAS included (two threads then take three times as long as one); it reads this when it is
// loaded, which is before main.
void start_again_with_passive_openmp(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);  // comes back only if it cannot; then the numbers are worse
}

}  // namespace

int main(int argc, char** argv) {
  start_again_with_passive_openmp(argv);
  CLI::App app("Time and memory of attention beside libtorch's operators");
  Options options;
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    if (options.list) {
      for (const Kind& kind : kinds()) fmt::print("{:<15} {}\n", kind.name, kind.about);
    } else {
      run(options);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
