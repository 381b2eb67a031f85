#include "bench/attention/measure.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "bench/attention/peak_memory.h"
#include "sextant/error.h"

namespace sextant::bench {
namespace {

using Call = std::function<void()>;

double seconds_of(const Call& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Seconds of one of `repeats` calls; `before` each is not timed.
double timed(const Call& before, const Call& call, int repeats) {
  double sum = 0;
  for (int n = 0; n < repeats; ++n) {
    before();
    sum += seconds_of(call);
  }
  return sum / repeats;
}

struct Contest {
  Call before_ours, ours, before_eager, eager;
};

void take_turns(const Contest& contest, const MeasureOptions& options, Measured& measured) {
  const auto repeats_of = [&](const Call& before, const Call& call) {
    before();
    call();  // the first call finds cold caches and touches new memory
    before();
    return static_cast<int>(std::clamp(options.least_seconds / seconds_of(call), 1.0, 1000.0));
  };
  const int ours = repeats_of(contest.before_ours, contest.ours);
  const int eager = repeats_of(contest.before_eager, contest.eager);
  for (int round = 0; round < options.rounds; ++round) {
    measured.ours.time.rounds.push_back(timed(contest.before_ours, contest.ours, ours));
    measured.eager.time.rounds.push_back(timed(contest.before_eager, contest.eager, eager));
  }
}

void without_gradients(const Call& call) {
  const c10::AutoGradMode guard(false);
  call();
}

}  // namespace

double Seconds::least() const { return *std::min_element(rounds.begin(), rounds.end()); }

double Seconds::median() const {
  std::vector<double> sorted = rounds;
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

std::vector<Measured> measure(Workload& w, const Backend& backend, const Executor& executor,
                              const MeasureOptions& options) {
  const Call nothing = [] {};
  const Call ours_forward = [&] { w.ours_forward(backend, executor); };
  const Call ours_backward = [&] { w.ours_backward(backend, executor); };
  const Call eager_forward = [&] { w.eager_forward(); };
  const Call eager_backward = [&] { w.eager_backward(); };
  const Call eager_inference = [&] { without_gradients(eager_forward); };

  ours_forward();
  eager_forward();
  if (w.has_backward) {
    ours_backward();
    eager_backward();
  }
  if (const double wrong = w.disagreement(); !(wrong < 1e-3)) {
    fail("bench: " + w.name() + ": expected both sides to agree to 1e-3, but got " +
         std::to_string(wrong));
  }

  const double columns = static_cast<double>(w.q.size(3));
  std::vector<Measured> passes;
  Measured& forward = passes.emplace_back();
  forward = {.kind = w.name(),
             .pass = "forward",
             .operations = 4 * columns * w.pairs(),
             .bytes = w.bound_by_memory ? w.least_bytes() : 0};
  take_turns({nothing, ours_forward, nothing, eager_inference}, options, forward);
  w.clear();
  forward.ours.peak_bytes = peak_memory(ours_forward);
  w.clear();
  forward.eager.peak_bytes = peak_memory(eager_inference);
  w.clear();
  if (!w.has_backward) return passes;

  Measured& backward = passes.emplace_back();
  backward = {.kind = w.name(), .pass = "backward", .operations = 10 * columns * w.pairs()};
  ours_forward();
  // Eager's graph is spent by its backward pass.
  take_turns({nothing, ours_backward, eager_forward, eager_backward}, options, backward);
  w.clear();
  backward.ours.peak_bytes = peak_memory([&] {
    ours_forward();
    ours_backward();
  });
  w.clear();
  backward.eager.peak_bytes = peak_memory([&] {
    eager_forward();
    eager_backward();
  });
  w.clear();
  return passes;
}

}  // namespace sextant::bench
