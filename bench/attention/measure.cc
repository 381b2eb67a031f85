// Every kind of attention is checked against its peer before it is timed; the rounds of both
// alternate.
#include "bench/attention/measure.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "bench/decode_products.h"
#include "bench/peak_memory.h"
#include "bench/read_peak.h"
#include "sextant/base/error.h"

namespace sextant::bench {
namespace {

using Call = std::function<void()>;

void without_gradients(const Call& call) {
  const c10::AutoGradMode guard(false);
  call();
}

void check(const Workload& w, const char* peer, double wrong, double most) {
  if (wrong < most) return;
  fail(fmt::format("bench: {}: expected ours and {} to agree to {}, but got {}", w.name(), peer,
                   most, wrong));
}

void check_agreement(Workload& w, const Backend& backend, const Executor& executor, bool ggml) {
  w.ours_forward(backend, executor);
  w.eager_forward();
  if (w.has_backward) {
    w.ours_backward(backend, executor);
    w.eager_backward();
  }
  constexpr double kWide = 1e-3, kNarrow = 3e-2;
  const bool wide = backend.products == DType::kFloat32;
  check(w, "libtorch", w.disagreement(), wide ? kWide : kNarrow);
  if (ggml && w.ggml) {
    w.ggml_forward(executor.workers());
    // ggml rounds queries, and sums of values, to 16 bits if the keys have 16 bits.
    check(w, "ggml", w.disagreement_with_ggml(),
          wide && w.score.k.dtype == DType::kFloat32 ? kWide : kNarrow);
  }
  w.clear();
}

std::unique_ptr<Workload> checked(const Kind& kind, const Sizes& sizes, const Backend& backend,
                                  const Executor& executor, const MeasureOptions& options) {
  auto workload = kind.make(sizes);
  if (options.eager) {
    check_agreement(*workload, backend, executor, options.ggml);
  } else {
    constexpr int64_t kShort = 256;
    Sizes few = sizes;
    few.length = std::min(few.length, kShort);
    few.cache = std::min(few.cache, kShort);
    few.window = 0;
    check_agreement(*kind.make(few), backend, executor, options.ggml);
  }
  return workload;
}

std::unique_ptr<Workload> plain_of(const Kind& kind, const Sizes& sizes) {
  for (const Kind& other : kinds())
    if (other.name == kind.beside) return other.make(sizes);
  return nullptr;
}

// The measurements of both passes of one kind.
struct Match {
  Workload& w;
  Workload* plain;
  const Backend& backend;
  const Executor& executor;
  const MeasureOptions& options;

  // Reads all data of a pass except for one query per head.
  void read_keys_and_values(int64_t streams) const {
    for (const auto& x : {w.score.k, w.score.v}) {
      const auto bytes = static_cast<size_t>(w.k.numel() * x.element_size());
      read_all({static_cast<const std::byte*>(x.data), bytes}, streams, executor);
    }
  }

  // ggml: may be null.
  void take_turns(const std::function<Call(Workload&)>& ours, const Contestant& eager,
                  const Call& ggml, Measured& measured) const {
    std::vector<Contestant> contestants = {{ours(w)}};
    double at_peak = 0;  // operations per call
    const bool multiplies = w.bound_by_memory && !w.is_rotated();
    if (w.bound_by_memory)
      for (const int64_t streams : kStreamCounts)
        contestants.push_back({[this, streams] { read_keys_and_values(streams); }});
    else
      contestants.push_back({[&] { at_peak = options.at_peak(executor); }});
    if (multiplies) contestants.push_back({[&] { multiply_cached(w.score, executor); }});
    if (plain) contestants.push_back({ours(*plain)});
    if (options.eager) contestants.push_back(eager);
    if (ggml) contestants.push_back({ggml});
    const std::vector<Seconds> times = bench::take_turns(contestants, options.rounds);
    auto next = times.begin();
    measured.ours.time = *next++;
    if (w.bound_by_memory) {
      const auto readings = std::span(next, kStreamCounts.size());
      measured.reading = *std::ranges::min_element(readings, {}, &Seconds::least);
      next += kStreamCounts.size();
    } else {
      measured.multiplying = *next++;
      for (double& seconds : measured.multiplying->rounds) seconds *= measured.operations / at_peak;
    }
    if (multiplies) measured.products = *next++;
    if (plain) measured.plain = *next++;
    if (options.eager) measured.eager = {.time = *next++};
    if (ggml) measured.ggml = *next++;
  }

  void take_memory(const Call& ours, const Call& eager, Measured& measured) const {
    w.clear();
    if (plain) plain->clear();
    measured.ours.peak_bytes = peak_memory(ours);
    w.clear();
    if (!options.eager) return;
    measured.eager->peak_bytes = peak_memory(eager);
    w.clear();
  }

  void forward(Measured& measured) const {
    const Call eager = [this] { without_gradients([this] { w.eager_forward(); }); };
    const auto ours = [this](Workload& x) {
      return [this, &x] { x.ours_forward(backend, executor); };
    };
    Call ggml;
    if (options.ggml && w.ggml) ggml = [this] { w.ggml_forward(executor.workers()); };
    take_turns(ours, {eager}, ggml, measured);
    take_memory(ours(w), eager, measured);
  }

  void backward(Measured& measured) const {
    const Call eager_forward = [this] { w.eager_forward(); };
    const Call eager_backward = [this] { w.eager_backward(); };
    const auto ours = [this](Workload& x) {
      return [this, &x] { x.ours_backward(backend, executor); };
    };
    w.ours_forward(backend, executor);
    if (plain) plain->ours_forward(backend, executor);
    // libtorch's backward pass frees the graph, so each one needs a forward pass before it.
    take_turns(ours, {eager_backward, eager_forward}, nullptr, measured);
    const Call ours_both = [this] {
      w.ours_forward(backend, executor);
      w.ours_backward(backend, executor);
    };
    const Call eager_both = [&] {
      eager_forward();
      eager_backward();
    };
    take_memory(ours_both, eager_both, measured);
  }
};

}  // namespace

std::vector<Measured> measure(const Kind& kind, const Sizes& sizes, const Backend& backend,
                              const Executor& executor, const MeasureOptions& options) {
  const auto workload = checked(kind, sizes, backend, executor, options);
  const auto plain = plain_of(kind, sizes);
  const Match match = {*workload, plain.get(), backend, executor, options};
  const Workload& w = *workload;
  const double columns = static_cast<double>(w.q.size(3));
  std::vector<Measured> passes = {{.kind = w.name(),
                                   .pass = "forward",
                                   .operations = 4 * columns * w.pairs(),
                                   .bytes = w.bound_by_memory ? w.least_bytes() : 0}};
  match.forward(passes[0]);
  if (!w.has_backward || !options.backward) return passes;
  passes.push_back({.kind = w.name(), .pass = "backward", .operations = 10 * columns * w.pairs()});
  match.backward(passes[1]);
  return passes;
}

}  // namespace sextant::bench
