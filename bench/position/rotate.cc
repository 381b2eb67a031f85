// bench_rotate: time of RoPE in place on queries and keys, beside a copy of as many bytes and
// beside RoPE with libtorch's operators, which makes new tensors from precomputed cosines and
// sines.
//
// GB/s count each element as read once and written once. Our call computes cos and sin of every
// position in each call.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/attention/eager.h"
#include "bench/program.h"
#include "bench/rounds.h"
#include "sextant/attention/rotary/rotate.h"
#include "sextant/base/error.h"

namespace {

using namespace sextant;
using namespace sextant::bench;

struct Options {
  int64_t batch = 1, heads = 8, key_heads = 8, length = 8192, columns = 128;
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  RoundOptions rounds = {.rounds = 9};
  std::string json;
};

void declare(CLI::App& app, Options& o) {
  app.add_option("--batch", o.batch, "batch entries")->check(CLI::Range(1, 1024));
  app.add_option("--heads", o.heads, "query heads")->check(CLI::Range(1, 1024));
  app.add_option("--key-heads", o.key_heads, "key heads")->check(CLI::Range(1, 1024));
  app.add_option("--length,-n", o.length, "positions")->check(CLI::Range(1, 1 << 22));
  app.add_option("--head-size,-d", o.columns, "columns of a head, even")
      ->check(CLI::Range(2, 1024));
  app.add_option("--threads", o.threads, "threads of either side")->check(CLI::Range(1, 1024));
  app.add_option("--rounds", o.rounds.rounds, "rounds")->check(CLI::Range(1, 1000));
  app.add_option("--json", o.json, "write all numbers to this file");
  app.get_formatter()->column_width(24);
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
}

View<float> view(const at::Tensor& x) {
  return {x.data_ptr<float>(), x.size(0),   x.size(1),   x.size(2),  x.size(3),
          x.stride(0),         x.stride(1), x.stride(2), x.stride(3)};
}

// One contiguous part per thread, so that the C library chooses the best way to copy.
void copy(const at::Tensor& source, const at::Tensor& target, const Executor& executor) {
  const int64_t pieces = executor.workers();
  executor.run(pieces, [&](int64_t n, int) {
    const int64_t first = source.numel() * n / pieces, last = source.numel() * (n + 1) / pieces;
    std::memcpy(target.data_ptr<float>() + first, source.data_ptr<float>() + first,
                sizeof(float) * static_cast<size_t>(last - first));
  });
}

// Checks that the timed calls compute RoPE.
void check_agreement(const at::Tensor& before, const at::Tensor& after, const Angles& angles) {
  const double wrong = (rotated(before, angles) - after).abs().max().item<double>();
  if (!(wrong < 1e-5))
    fail("bench: rotate: expected both sides to agree to 1e-5, but got " + std::to_string(wrong));
}

nlohmann::json run(const Options& o) {
  const c10::InferenceMode no_gradients;
  at::set_num_threads(o.threads);
  const auto executor = make_thread_pool(o.threads);
  const Rotation exact = rotation(rotary({.dim = o.columns}));
  const at::Tensor q = at::randn({o.batch, o.heads, o.length, o.columns});
  const at::Tensor k = at::randn({o.batch, o.key_heads, o.length, o.columns});
  const at::Tensor q_copy = q.clone(), k_copy = k.clone();
  const Angles kept = angles(exact, o.columns, 0, o.length);
  std::vector<int64_t> rotary_positions;
  for (int64_t n = 0; n < o.length; ++n) rotary_positions.push_back(n);
  const HostView<float> views[] = {HostView(view(q)), HostView(view(k))};
  const auto rotate = [&] {
    rotate_rows(views, {.rotation = &exact, .rotary_positions = rotary_positions.data()},
                *executor);
  };
  rotate();
  check_agreement(q_copy, q, kept);
  check_agreement(k_copy, k, kept);

  const Contestant copying = {[&] {
    copy(q, q_copy, *executor);
    copy(k, k_copy, *executor);
  }};
  const Contestant eager = {[&] {
    rotated(q, kept);
    rotated(k, kept);
  }};
  const std::vector<Seconds> seconds = take_turns({{rotate}, copying, eager}, o.rounds);
  const double bytes = 2.0 * sizeof(float) * static_cast<double>(q.numel() + k.numel());
  fmt::print("{} positions, batch {}, {} and {} heads of {}; {} threads, {} rounds\n\n", o.length,
             o.batch, o.heads, o.key_heads, o.columns, o.threads, o.rounds.rounds);
  fmt::print("{:<18} {:>17} {:>8} {:>18}\n", "", "ms", "", "speed, of copying");
  fmt::print("{:<18} {:>8} {:>8} {:>8} {:>9} {:>8}\n", "", "least", "median", "GB/s", "least",
             "median");
  const char* const names[] = {"rotated in place", "copied", "libtorch's eager"};
  nlohmann::json measured;
  for (size_t n = 0; n < seconds.size(); ++n) {
    fmt::print("{:<18} {:>8.2f} {:>8.2f} {:>8.1f} {:>9.2f} {:>8.2f}\n", names[n],
               1e3 * seconds[n].least(), 1e3 * seconds[n].median(),
               bytes / seconds[n].least() / 1e9, seconds[1].least() / seconds[n].least(),
               median_ratio(seconds[1], seconds[n]));
    measured[names[n]] = to_json(seconds[n]);
  }
  return {{"threads", o.threads},     {"batch", o.batch},    {"heads", o.heads},
          {"key_heads", o.key_heads}, {"length", o.length},  {"head_dim", o.columns},
          {"bytes", bytes},           {"measured", measured}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time of rotating queries and keys in place beside copying them");
  Options options;
  declare(app, options);
  CLI11_PARSE(app, argc, argv);
  return run_program(options.json, [&] { return run(options); });
}
