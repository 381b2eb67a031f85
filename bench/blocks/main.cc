// bench_blocks: the attention block of a Conformer or a DeBERTa in a ggml graph, by ggml's own
// operations and by Sextant's. bench/blocks.py runs it, one way in a process, so that the memory of
// one is not that of another.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/blocks/layer.h"
#include "bench/peak_memory.h"
#include "bench/program.h"
#include "bench/rounds.h"
#include "sextant/base/error.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

struct Options {
  std::string block = "conformer", way, json;
  LayerSizes sizes = {.heads = 0, .head_dim = 0};
  int threads = 1;
  double least_seconds = 0.5;
  bool check = false;
};

void declare(CLI::App& app, Options& o) {
  app.add_option("--block", o.block, "the block")->check(CLI::IsMember({"conformer", "deberta"}));
  app.add_option("--way", o.way, "how its attention is written; without it, all are listed");
  app.add_option("--rows", o.sizes.rows, "frames or tokens")->check(CLI::Range(2, 1 << 20));
  app.add_option("--heads", o.sizes.heads, "heads; 0: 8, or 12 of DeBERTa")
      ->check(CLI::Range(0, 1024));
  app.add_option("--head-size", o.sizes.head_dim, "columns of a head; 0: 128, or 64 of DeBERTa")
      ->check(CLI::Range(0, 1024));
  app.add_option("--threads", o.threads, "threads")->check(CLI::Range(1, 512));
  app.add_option("--seconds", o.least_seconds, "calls are repeated for so many seconds")
      ->check(CLI::Range(0.0, 3600.0));
  app.add_flag("--check", o.check, "compare all ways with a reference in float64, without timing");
  app.add_option("--json", o.json, "write all numbers to this file");
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
}

constexpr size_t kTensors = 200;

// A graph that is ready to compute. `bytes`: ggml's compute buffer and its threads' buffer.
struct Ready {
  GgmlGraph graph{kTensors};
  ggml_tensor* result = nullptr;
  size_t bytes = 0;

  Ready(Layer& block, const std::string& way, int threads) {
    result = block.build(graph, way);
    bytes = graph.allocate();
    graph.plan(threads);
    bytes += graph.work_bytes();
  }
  std::vector<float> values() const {
    const auto* data = static_cast<const float*>(result->data);
    return {data, data + ggml_nelements(result)};
  }
};

template <typename A, typename B>
double relative_difference(const std::vector<A>& values, const std::vector<B>& expected) {
  double most = 0, size = 0;
  for (size_t n = 0; n < expected.size(); ++n) {
    const double difference =
        std::abs(static_cast<double>(values[n]) - static_cast<double>(expected[n]));
    most = std::isnan(difference) ? INFINITY : std::max(most, difference);
    size = std::max(size, std::abs(static_cast<double>(expected[n])));
  }
  return most / size;
}

// Compares each way with the reference and with the first; ways through float16 have a bound of
// their own.
nlohmann::json check(Layer& block, int threads) {
  const std::vector<double> expected = block.reference();
  const std::vector<float> first = [&] {
    Ready ready(block, block.ways().front(), threads);
    ready.graph.compute();
    return ready.values();
  }();
  nlohmann::json errors;
  std::string summary;
  for (const std::string& way : block.ways()) {
    Ready ready(block, way, threads);
    ready.graph.compute();
    const double error = relative_difference(ready.values(), expected),
                 difference = relative_difference(ready.values(), first);
    summary += fmt::format("{}{} {:.1e}", summary.empty() ? "" : "; ", way, error);
    const double bound = block.exact(way) ? 1e-5 : 1e-2;
    if (!(error <= bound && difference <= bound))
      fail(fmt::format("bench: {}: expected at most {}, but got {} and {}", way, bound, error,
                       difference));
    errors[way] = error;
  }
  fmt::print("{}\n", summary);
  return {{"errors", errors}};
}

// `sample`: values of the result, by which bench/blocks.py compares the ways.
nlohmann::json run(Layer& block, const Options& o) {
  std::unique_ptr<Ready> ready;
  const auto peak = peak_memory([&] {
    ready = std::make_unique<Ready>(block, o.way, o.threads);
    ready->graph.compute();
  });
  // The call above was the first.
  Seconds seconds;
  const auto began = std::chrono::steady_clock::now();
  double sum = 0;
  do {
    ready->graph.compute();
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - began;
    seconds.rounds.push_back(since.count() - sum);
    sum = since.count();
  } while (sum < o.least_seconds);
  const std::vector<float> values = ready->values();
  std::vector<float> sample;
  for (size_t n = 0; n < 256; ++n) sample.push_back(values[n * 7919 % values.size()]);
  fmt::print(
      "{}, {} rows, {} threads, {}: {:.2f} ms, {:.1f} MB in ggml's buffers, {:.1f} MB peak\n",
      o.block, o.sizes.rows, o.threads, o.way, 1e3 * seconds.least(),
      1e-6 * static_cast<double>(ready->bytes), 1e-6 * static_cast<double>(peak.value_or(0)));
  nlohmann::json document = {{"way", o.way},
                             {"exact", block.exact(o.way)},
                             {"bytes", ready->bytes},
                             {"sample", sample},
                             {"seconds", to_json(seconds)}};
  if (peak) document["peak"] = *peak;
  return document;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("An encoder's attention block in a ggml graph");
  Options o;
  declare(app, o);
  CLI11_PARSE(app, argc, argv);
  const bool conformer = o.block == "conformer";
  if (o.sizes.heads == 0) o.sizes.heads = conformer ? 8 : 12;
  if (o.sizes.head_dim == 0) o.sizes.head_dim = conformer ? 128 : 64;
  return run_program(o.json, [&]() -> nlohmann::json {
    const auto block = conformer ? make_conformer_layer(o.sizes) : make_deberta_layer(o.sizes);
    if (o.check) return check(*block, o.threads);
    if (!o.way.empty()) return run(*block, o);
    for (const std::string& way : block->ways()) fmt::print("{}\n", way);
    return {{"ways", block->ways()}};
  });
}
