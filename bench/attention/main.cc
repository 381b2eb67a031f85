// bench_attention: time and peak memory of attention, forward and backward, for every kind of
// operand, beside the same attention with libtorch's operators and, for the forward pass, with
// ggml's, if the build found it.
//
// GFLOP/s count the products of plain attention over the visible pairs, 2 forward and 5 backward,
// so that the cost of tables and rotations appears as a lower figure. It also appears as a ratio to
// the plain kind of the same mask in the same rounds (without positions; rope for the piecewise
// rotations). Results are fractions of the peak of the same rounds, since the peak changes with the
// load of the machine. Decoding is bound by memory; GB/s count each operand once. Memory is the
// peak growth of the process: in the forward pass without gradients, in the backward pass of both
// passes together.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/attention/report.h"
#include "bench/fma_peak.h"
#include "bench/program.h"
#include "bench/read_peak.h"
#include "sextant/base/error.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

const std::map<std::string, at::ScalarType> kDtypes = {
    {"float32", at::kFloat}, {"bfloat16", at::kBFloat16}, {"float16", at::kHalf}};

struct Options {
  Sizes sizes;
  std::string dtype = "float32";  // becomes sizes.dtype
  std::vector<int64_t> lengths = {Sizes{}.length}, head_sizes = {64, 128};
  MeasureOptions measure = {.ggml = has_ggml()};
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::string backend = "cpu";
  std::vector<std::string> kinds;  // empty: all
  std::string json;
  bool list = false;
};

void declare(CLI::App& app, Options& o) {
  app.add_option("--lengths,--n", o.lengths, "queries and keys")
      ->check(CLI::Range(1, 1 << 20))
      ->delimiter(',');
  app.add_option("--head-sizes,--d", o.head_sizes, "columns of a head, even")
      ->check(CLI::Range(2, 1024))
      ->delimiter(',');
  app.add_option("--heads", o.sizes.heads, "heads")->check(CLI::Range(1, 1024));
  app.add_option("--batch", o.sizes.batch, "batch entries")->check(CLI::Range(1, 1024));
  app.add_option("--cache", o.sizes.cache, "keys of the decoding kinds")
      ->check(CLI::Range(1, 1 << 24));
  app.add_option("--threads", o.threads, "threads of either side")->check(CLI::Range(1, 1024));
  app.add_option(
         "--window", o.sizes.window,
         "keys within the window of window, rerope and leaky-rerope; 0: an eighth of the text")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--dtype", o.dtype,
                 "of q, k and v in memory; results, gradients and libtorch's side are float32, and "
                 "ggml's q")
      ->check(CLI::IsMember(kDtypes));
  app.add_flag(
      "--rows-first", o.sizes.rows_first,
      "q, k and v lie as [batch, rows, heads, columns], as models have them, and not heads first");
  app.add_option("--rounds", o.measure.rounds.rounds, "rounds")->check(CLI::Range(1, 1000));
  app.add_option("--backend", o.backend,
                 "the backend that is ours: cpu, cpu-bf16x3, cpu-bf16 (whose share is of the peak "
                 "of bfloat16)");
  app.add_option("--kinds", o.kinds, "these kinds only")->delimiter(',');
  app.add_option("--json", o.json, "write all numbers to this file");
  app.add_flag("--eager,!--no-eager", o.measure.eager,
               "beside libtorch's operators, which take minutes for long texts (default: yes)");
  app.add_flag("--ggml,!--no-ggml", o.measure.ggml,
               "beside ggml, forward, the kinds that it has (default: where the build found it)");
  app.add_flag("--backward,!--no-backward", o.measure.backward, "backward, too (default: yes)");
  app.add_flag("--list", o.list, "list the kinds");
  app.get_formatter()->column_width(24);
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
}

void check_names(const std::vector<std::string>& wanted) {
  for (const std::string& name : wanted) {
    const auto is_it = [&](const Kind& kind) { return kind.name == name; };
    if (std::none_of(kinds().begin(), kinds().end(), is_it)) {
      fail("bench: kinds: expected kinds that --list lists, but got \"" + name + "\"");
    }
  }
}

// Measures all requested kinds at one size; the decoding kinds only if `decoding`.
void run_size(const Options& o, const Sizes& sizes, bool decoding, const Executor& executor,
              nlohmann::json& all) {
  const Backend& backend = sextant::backend(o.backend);
  fmt::print("\n{} queries and keys; batch {}, {} heads of {}, {}{}\n{}", sizes.length, sizes.batch,
             sizes.heads, sizes.head_dim, o.dtype, sizes.rows_first ? ", rows first" : "",
             table_head(o.measure));
  for (const Kind& kind : kinds()) {
    const bool wanted =
        o.kinds.empty() || std::find(o.kinds.begin(), o.kinds.end(), kind.name) != o.kinds.end();
    if (!wanted || (kind.decodes && !decoding)) continue;
    for (const Measured& measured : measure(kind, sizes, backend, executor, o.measure)) {
      fmt::print("{}", table_row(measured, o.measure));
      std::fflush(stdout);
      nlohmann::json& json = all.emplace_back(to_json(measured));
      json["length"] = sizes.length;
      json["head_dim"] = sizes.head_dim;
    }
  }
}

nlohmann::json run(Options o) {
  check_names(o.kinds);
  if (o.measure.ggml && !has_ggml())
    fail("bench: ggml: expected a build that found it, but this one did not");
  at::set_num_threads(o.threads);
  at::manual_seed(1);
  const auto executor = make_thread_pool(o.threads);
  const FmaPeak fma = fma_peak(*executor), bfloat16 = bfloat16_peak(*executor);
  const Backend& backend = sextant::backend(o.backend);
  if (backend.device != Device::kHost)
    fail("bench: backend: expected one in memory of the host, but got \"" + o.backend + "\"");
  const bool pairs = backend.products == DType::kBfloat16;
  if (pairs && bfloat16.operations > 0) o.measure.at_peak = multiply_and_add_bfloat16;
  const ReadPeak reading = read_peak(*executor);
  fmt::print(
      "{} threads, FMA peak {:.0f} GFLOP/s ({:.2f} vectors a cycle at {:.2f} GHz), read peak "
      "{:.1f} "
      "GB/s of {} places at once for each thread; {} keys to decode on; {} rounds\n",
      o.threads, fma.operations / 1e9, fma.vector_rate, fma.clock / 1e9, reading.bytes / 1e9,
      reading.streams, o.sizes.cache, o.measure.rounds.rounds);
  fmt::print("products of bfloat16: {}\n",
             bfloat16.operations > 0 ? fmt::format("peak {:.0f} GFLOP/s", bfloat16.operations / 1e9)
                                     : "no instruction for them here");
  nlohmann::json all = nlohmann::json::array();
  for (const int64_t head_dim : o.head_sizes) {
    for (const int64_t length : o.lengths) {
      Sizes sizes = o.sizes;
      sizes.head_dim = head_dim;
      sizes.length = length;
      sizes.dtype = kDtypes.at(o.dtype);
      run_size(o, sizes, length == o.lengths.front(), *executor, all);
    }
  }
  return {{"threads", o.threads},
          {"fma_peak", fma.operations},
          {"bfloat16_peak", bfloat16.operations},
          {"read_peak", reading.bytes},
          {"batch", o.sizes.batch},
          {"heads", o.sizes.heads},
          {"cache", o.sizes.cache},
          {"dtype", o.dtype},
          {"rows_first", o.sizes.rows_first},
          {"backend", o.backend},
          {"amx", multiplies_by_amx()},
          {"measured", all}};
}

// By default libgomp's threads spin after each parallel region and take the cores from all other
// threads, even from libtorch's own BLAS (two threads then take three times as long as one).
// libgomp reads the variable when it is loaded, which is before main().
void start_again_with_passive_openmp(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);  // returns only on failure; the times are then worse
}

}  // namespace

int main(int argc, char** argv) {
  start_again_with_passive_openmp(argv);
  CLI::App app("Time and memory of attention beside libtorch's operators");
  Options options;
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  if (options.list) {
    for (const Kind& kind : kinds()) fmt::print("{:<15} {}\n", kind.name, kind.about);
    return 0;
  }
  return run_program(options.json, [&] { return run(options); });
}
