// bench_decode: attention of one token over cached keys and values, beside ggml's and beside
// reading the cache alone. bench/decode.py runs it, and PyTorch's attention in turn with it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/decode/engine.h"
#include "bench/program.h"
#include "bench/read_peak.h"
#include "bench/rounds.h"
#include "sextant/base/error.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

const std::map<std::string, DType> kTypes = {{"float32", DType::kFloat32},
                                             {"bfloat16", DType::kBfloat16},
                                             {"float16", DType::kFloat16},
                                             {"int8", DType::kBfloat16}};

struct Options {
  DecodeSizes sizes;
  std::string dtype = "bfloat16", json;
  int threads = 1;
  // Short timings: on a busy machine the least of many is of calls that nothing interrupted.
  RoundOptions rounds = {.rounds = 20, .least_seconds = 0.005};
};

void declare(CLI::App& app, Options& o) {
  app.add_option("--keys", o.sizes.keys, "cached rows")->check(CLI::Range(1, 1 << 24));
  app.add_option("--dtype", o.dtype, "type of the cache")->check(CLI::IsMember(kTypes));
  app.add_option("--layers", o.sizes.layers, "layers")->check(CLI::Range(1, 1000));
  app.add_option("--heads", o.sizes.heads, "query heads")->check(CLI::Range(1, 1024));
  app.add_option("--key-heads", o.sizes.key_heads, "key heads")->check(CLI::Range(1, 1024));
  app.add_option("--head-size", o.sizes.head_dim, "columns of a head, even")
      ->check(CLI::Range(2, 1024));
  app.add_option("--threads", o.threads, "threads of either side")->check(CLI::Range(1, 1024));
  app.add_option("--rounds", o.rounds.rounds, "rounds")->check(CLI::Range(1, 1000));
  app.add_option("--json", o.json, "write all numbers to this file");
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
}

// ggml rounds queries to the type of the keys, and sums in it where that is float16.
void check_agreement(const DecodeSizes& sizes, const std::vector<float>& ours,
                     const std::vector<float>& theirs) {
  const float bound = sizes.dtype == DType::kFloat32    ? 1e-4F
                      : sizes.dtype == DType::kBfloat16 ? 0.02F
                                                        : 0.1F;
  float most = 0;
  for (size_t n = 0; n < ours.size(); ++n) most = std::max(most, std::abs(ours[n] - theirs[n]));
  if (!(most < bound))
    fail("bench: ggml: expected both sides to agree to " + std::to_string(bound) + ", but got " +
         std::to_string(most));
}

nlohmann::json run(const Options& o) {
  const auto executor = make_thread_pool(o.threads);
  const int64_t key_bytes = o.sizes.key_bytes(), value_bytes = o.sizes.value_bytes();
  const auto bytes = static_cast<double>(key_bytes + value_bytes);
  const DecodeData data(o.sizes);
  std::vector<float> ours(data.q.size()), theirs = ours, unused = ours;
  std::vector<std::string> names = {"none", "rope"};
  std::vector<Contestant> contestants = {{sextant_call(data, Positions::kNone, *executor, ours)},
                                         {sextant_call(data, Positions::kRope, *executor, unused)}};
  if (!o.sizes.int8) {
    names.emplace_back("rope, rotated keys");
    contestants.push_back({sextant_call(data, Positions::kRopeRotatedKeys, *executor, unused)});
  }
  if (has_ggml_decode()) {
    names.emplace_back("ggml");
    contestants.push_back({ggml_call(data, o.threads, theirs)});
  }
  for (const int64_t streams : kStreamCounts) {
    names.push_back(fmt::format("reading, {} streams", streams));
    contestants.push_back({[&, streams] {
      read_all(std::span(data.k).first(static_cast<size_t>(key_bytes)), streams, *executor);
      read_all(std::span(data.v).first(static_cast<size_t>(value_bytes)), streams, *executor);
    }});
  }
  const std::vector<Seconds> seconds = take_turns(contestants, o.rounds);
  if (has_ggml_decode()) check_agreement(o.sizes, ours, theirs);
  fmt::print("{} layers of {} heads on {} of {}, {} keys in {}\n", o.sizes.layers, o.sizes.heads,
             o.sizes.key_heads, o.sizes.head_dim, o.sizes.keys, o.dtype);
  nlohmann::json measured;
  for (size_t n = 0; n < names.size(); ++n) {
    fmt::print("{:<20} {:>8.2f} ms {:>8.1f} GB/s\n", names[n], 1e3 * seconds[n].least(),
               bytes / seconds[n].least() / 1e9);
    measured[names[n]] = to_json(seconds[n]);
  }
  return {{"bytes", bytes}, {"measured", measured}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Attention of one token over cached keys and values");
  Options options;
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  options.sizes.dtype = kTypes.at(options.dtype);
  options.sizes.int8 = options.dtype == "int8";
  return run_program(options.json, [&] { return run(options); });
}
