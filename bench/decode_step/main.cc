// bench_decode_step: the time of one decoding step and its calls of operator new. The row "core"
// is attention over a paged cache by the C API; each method's row is a whole transformer.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/decode_step/allocations.h"
#include "bench/decode_step/core_step.h"
#include "bench/decode_step/model_step.h"
#include "bench/program.h"
#include "bench/rounds.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

struct Options {
  StepSizes sizes;
  int threads = 1;
  std::vector<std::string> methods = {"rope"};
  RoundOptions rounds = {.rounds = 20, .least_seconds = 0.05};
  std::string json;
};

struct Row {
  std::string name;
  std::function<void()> step;
};

nlohmann::json run(const Options& o) {
  std::vector<Row> rows = {{"core", core_step(o.sizes, o.threads)}};
  for (const std::string& method : o.methods) rows.push_back({method, model_step(o.sizes, method)});
  std::vector<Contestant> contestants;
  for (const Row& row : rows) contestants.push_back({row.step});
  const std::vector<Seconds> times = take_turns(contestants, o.rounds);

  nlohmann::json measured = nlohmann::json::array();
  fmt::print("{} layers, {} heads of {}, {} keys\n", o.sizes.layers, o.sizes.heads,
             o.sizes.head_dim, o.sizes.keys);
  fmt::print("{:<12} {:>10} {:>10} {:>12} {:>10}\n", "", "least ms", "median ms", "allocations",
             "per layer");
  for (size_t n = 0; n < rows.size(); ++n) {
    const int64_t before = allocations();
    rows[n].step();
    const int64_t count = allocations() - before;
    fmt::print("{:<12} {:>10.3f} {:>10.3f} {:>12} {:>10.1f}\n", rows[n].name,
               1e3 * times[n].least(), 1e3 * times[n].median(), count,
               static_cast<double>(count) / static_cast<double>(o.sizes.layers));
    nlohmann::json& json = measured.emplace_back(to_json(times[n]));
    json.update({{"name", rows[n].name}, {"allocations", count}});
  }
  return {{"layers", o.sizes.layers}, {"heads", o.sizes.heads}, {"head_dim", o.sizes.head_dim},
          {"keys", o.sizes.keys},     {"threads", o.threads},   {"measured", measured}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time and allocations of one decoding step");
  Options options;
  app.add_option("--layers", options.sizes.layers, "layers")->check(CLI::Range(1, 1000));
  app.add_option("--heads", options.sizes.heads, "heads of queries")->check(CLI::Range(1, 1024));
  app.add_option("--key-heads", options.sizes.key_heads, "heads of keys")
      ->check(CLI::Range(1, 1024));
  app.add_option("--keys", options.sizes.keys, "keys that the step sees")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "threads of the row \"core\"")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--methods", options.methods, "methods of the transformer; \"\": none")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--rounds", options.rounds.rounds, "rounds")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--json", options.json, "write all numbers to this file");
  CLI11_PARSE(app, argc, argv);
  std::erase(options.methods, "");
  return run_program(options.json, [&] { return run(options); });
}
