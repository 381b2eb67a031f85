// bench_training: tokens per second of the laboratory's training step, beside the same step with
// libtorch's functions, in interleaved rounds. Both start with the same weights and use the same
// batches, and their losses must agree.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "bench/program.h"
#include "bench/rounds.h"
#include "bench/training/eager.h"
#include "sextant/base/error.h"
#include "sextant/lab/torch/trainer.h"
#include "sextant/torch/method.h"

namespace {

using namespace sextant;
using namespace sextant::bench;
using nlohmann::json;

struct Options {
  int rounds = 9, threads = 1;
  double seconds = 0.3;
  std::vector<std::string> tasks = {"text", "pairs"};
  std::string json;
};

// Uniformly random bytes: the content of the tokens does not change the time.
lab::Batches batches_of(const lab::Settings& settings, lab::Task task,
                        const lab::TrainingOptions& training) {
  if (task == lab::Task::kPairs) return lab::small_batches(lab::Task::kPairs, training, 0);
  const int64_t vocabulary = settings.model.vocabulary;
  return [&training, vocabulary](int64_t step) {
    const at::Tensor text = at::empty({training.batch, training.length + 1}, at::kLong);
    auto* const tokens = text.data_ptr<int64_t>();
    uint64_t state = static_cast<uint64_t>(step);
    for (int64_t n = 0; n < text.numel(); ++n) {
      state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
      tokens[n] = static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(vocabulary));
    }
    return lab::Batch{text.narrow(1, 0, training.length), text.narrow(1, 1, training.length)};
  };
}

struct Contest {
  double tokens = 0;  // per step
  Seconds ours, eager;
};

Contest contest(const Options& options, lab::Task task) {
  const lab::Settings settings;
  const DecoderOptions model = lab::model_of(settings, task);
  const lab::TrainingOptions training = lab::training_of(settings, task);
  Decoder decoder(model, make_method("rope", model_shape(model, training.length), json::object()),
                  /*seed=*/0);
  const lab::Batches batches = batches_of(settings, task, training);
  EagerTrainer eager(decoder, training);
  lab::Trainer ours(training, batches, decoder);
  int64_t step = 0;
  const auto advance_eager = [&] {
    const double loss = eager.advance(
        batches(step), training.learning_rate * lab::learning_rate_at(training, step));
    ++step;
    return loss;
  };
  for (int n = 0; n < 3; ++n) {
    const double a = ours.advance(), b = advance_eager();
    if (!(std::abs(a - b) < 1e-3 * std::abs(b)))
      fail(
          fmt::format("bench: expected both sides to have the same loss, but got {} and {}", a, b));
  }
  const std::vector<Seconds> seconds =
      take_turns({{.call = [&] { ours.advance(); }}, {.call = [&] { advance_eager(); }}},
                 {.rounds = options.rounds, .least_seconds = options.seconds});
  return {.tokens = static_cast<double>(training.batch * training.length),
          .ours = seconds[0],
          .eager = seconds[1]};
}

json run(const Options& options) {
  at::set_num_threads(options.threads);
  at::globalContext().setFlushDenormal(true);
  fmt::print("{} threads, {} rounds; tokens a second\n", options.threads, options.rounds);
  fmt::print("{:<6} {:>11} {:>9} {:>12} {:>9} {:>20} {:>15}\n", "task", "ours median", "most",
             "eager median", "most", "ours / eager median", "least to most");
  json all = json::array();
  for (const std::string& name : options.tasks) {
    const Contest c = contest(options, name == "text" ? lab::Task::kText : lab::Task::kPairs);
    std::vector<double> ratios;
    for (size_t n = 0; n < c.ours.rounds.size(); ++n)
      ratios.push_back(c.eager.rounds[n] / c.ours.rounds[n]);
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    fmt::print("{:<6} {:>11.0f} {:>9.0f} {:>12.0f} {:>9.0f} {:>20.2f} {:>7.2f} to {:.2f}\n", name,
               c.tokens / c.ours.median(), c.tokens / c.ours.least(), c.tokens / c.eager.median(),
               c.tokens / c.eager.least(), median_ratio(c.eager, c.ours), *least, *most);
    all.push_back({{"task", name},
                   {"tokens", c.tokens},
                   {"ours", to_json(c.ours)},
                   {"eager", to_json(c.eager)}});
  }
  return {{"threads", options.threads}, {"measured", all}};
}

// OpenBLAS and libgomp read these variables when they are loaded, which is before main().
void start_again_with_threads(int threads, char** argv) {
  const std::string count = std::to_string(threads);
  const char* const now = std::getenv("OPENBLAS_NUM_THREADS");
  if (now != nullptr && now == count && std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OPENBLAS_NUM_THREADS", count.c_str(), 1);
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);
  fail("bench: cannot start again with OPENBLAS_NUM_THREADS=" + count);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Tokens a second of the lab's training step beside libtorch's functions");
  Options options;
  app.add_option("--tasks", options.tasks, "text, pairs")
      ->check(CLI::IsMember({"text", "pairs"}))
      ->delimiter(',');
  app.add_option("--rounds", options.rounds, "rounds")->check(CLI::Range(1, 1000));
  app.add_option("--seconds", options.seconds, "of each side in a round")
      ->check(CLI::Range(0.001, 60.0));
  app.add_option("--threads", options.threads, "threads of either side")
      ->check(CLI::Range(1, 1024));
  app.add_option("--json", options.json, "write all numbers to this file");
  for (CLI::Option* option : app.get_options()) option->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return run_program(options.json, [&] {
    start_again_with_threads(options.threads, argv);
    return run(options);
  });
}
