#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/fma_peak.cc"
#include <hwy/foreach_target.h>
// Highway's header must follow.
#include <fmt/core.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "bench/fma_peak.h"
#include "sextant/base/error.h"
#include "sextant/base/simd/avx512-inl.h"

#ifndef SEXTANT_BENCH_FMA_PEAK_ONCE
#define SEXTANT_BENCH_FMA_PEAK_ONCE
namespace sextant::bench {

// At least as many multiply-adds in flight as the latency times the units of any machine.
inline constexpr size_t kChains = 12;

struct MultiplyAdds {
  double vectors = 0, operations = 0;
};

}  // namespace sextant::bench
#endif

HWY_BEFORE_NAMESPACE();
namespace sextant::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Runs `rounds` times kChains steps; each depends only on the step kChains before it. chains holds
// the start values, and then the results. The compiler must not know that two chains start with the
// same value, since it would compute them once. operations: per lane and step.
template <class D, class Step>
HWY_INLINE MultiplyAdds run_chains(D d, int64_t rounds, float* HWY_RESTRICT chains,
                                   double operations, Step step) {
  const auto start = [&](size_t n) HWY_ATTR { return hn::Set(d, chains[n]); };
  auto a0 = start(0), a1 = start(1), a2 = start(2), a3 = start(3), a4 = start(4), a5 = start(5);
  auto a6 = start(6), a7 = start(7), a8 = start(8), a9 = start(9), a10 = start(10), a11 = start(11);
  const auto each = [&](auto&... a) HWY_ATTR { ((a = step(a)), ...); };
  for (int64_t n = 0; n < rounds; ++n) each(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11);
  size_t n = 0;
  const auto put = [&](const auto&... a) HWY_ATTR { ((chains[n++] = hn::GetLane(a)), ...); };
  put(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11);
  const double vectors = static_cast<double>(kChains) * static_cast<double>(rounds);
  return {vectors, operations * vectors * static_cast<double>(hn::Lanes(d))};
}

MultiplyAdds multiply_add(int64_t rounds, float* HWY_RESTRICT chains) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999F), term = hn::Set(d, 0.001F);
  return run_chains(d, rounds, chains, 2,
                    [&](auto a) HWY_ATTR { return hn::MulAdd(a, factor, term); });
}

// The same with dot products of bfloat16 pairs; zeros if the machine has no instruction for them.
MultiplyAdds multiply_add_pairs([[maybe_unused]] int64_t rounds,
                                [[maybe_unused]] float* HWY_RESTRICT chains) {
#if HWY_NATIVE_DOT_BF16
  const hn::ScalableTag<float> d;
  const hn::Repartition<hwy::bfloat16_t, decltype(d)> pairs;
  const auto x = hn::BitCast(pairs, hn::Set(d, 0.999F)), y = hn::BitCast(pairs, hn::Set(d, 0.001F));
  return run_chains(d, rounds, chains, 4, [&](auto a) HWY_ATTR {
    auto unused = hn::Zero(d);
    return hn::ReorderWidenMulAccumulate(d, x, y, a, unused);
  });
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (!sextant::HWY_NAMESPACE::has_bfloat16_products()) return {};
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, 0.999F), y = hn::Set(d, 0.001F);
  return run_chains(d, rounds, chains, 4, [&](auto a) HWY_ATTR {
    return sextant::HWY_NAMESPACE::add_product_of_pairs(x, y, a);
  });
#else
  return {};
#endif
}

}  // namespace sextant::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
namespace {

HWY_EXPORT(multiply_add);
HWY_EXPORT(multiply_add_pairs);

constexpr int kTries = 20, kClockReadings = 4;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Cycles per second, measured by dependent additions, which take one cycle each on every core.
double clock_of_core() {
  constexpr int64_t kAdditions = 4'000'000;  // about 1 ms
  uint64_t sum = 0, term = 1;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t n = 0; n < kAdditions; n += 4) {
    // The empty asm statement hides `sum` and `term` from the optimiser after each addition.
    for (int more = 0; more < 4; ++more) {
      sum += term;
      __asm__ volatile("" : "+r"(sum), "+r"(term));
    }
  }
  return static_cast<double>(kAdditions) / seconds_since(start);
}

// The most multiply-add units of a core: 2 on x86; 4 narrow ones on some ARM cores.
constexpr double kMostUnits = HWY_ARCH_X86 ? 2 : 4;

// Runs chains_of(rounds, chains) on each worker. Returns the sums over all workers.
using Chains = MultiplyAdds (*)(int64_t rounds, float* chains);
MultiplyAdds run_on_all(const Executor& executor, Chains chains_of) {
  constexpr int64_t kRounds = 3'000'000;  // about 10 ms
  const auto workers = static_cast<size_t>(executor.workers());
  std::array<float, kChains> starts;
  for (size_t n = 0; n < kChains; ++n) starts[n] = static_cast<float>(n) / kChains;
  std::vector<std::array<float, kChains>> chains(workers, starts);
  std::vector<MultiplyAdds> done(workers);
  executor.run(executor.workers(), [&](int64_t index, int) {
    const auto n = static_cast<size_t>(index);
    done[n] = chains_of(kRounds, chains[n].data());
  });
  MultiplyAdds all;
  for (const MultiplyAdds& some : done) {
    all.vectors += some.vectors;
    all.operations += some.operations;
  }
  return all;
}

MultiplyAdds chains_of_floats(int64_t rounds, float* chains) {
  return HWY_DYNAMIC_DISPATCH(multiply_add)(rounds, chains);
}
MultiplyAdds chains_of_pairs(int64_t rounds, float* chains) {
  return HWY_DYNAMIC_DISPATCH(multiply_add_pairs)(rounds, chains);
}

FmaPeak peak_of(const Executor& executor, Chains chains_of) {
  FmaPeak peak;
  double vectors = 0;  // per second and worker
  for (int attempt = 0; attempt < kTries; ++attempt) {
    // The clock is measured in every try, since it changes with the load, and several times, since
    // an interruption makes it appear slow.
    for (int n = 0; n < kClockReadings; ++n) peak.clock = std::max(peak.clock, clock_of_core());
    const auto start = std::chrono::steady_clock::now();
    const MultiplyAdds all = run_on_all(executor, chains_of);
    const double seconds = seconds_since(start);
    peak.operations = std::max(peak.operations, all.operations / seconds);
    vectors = std::max(vectors, all.vectors / seconds / executor.workers());
  }
  peak.vector_rate = vectors / peak.clock;
  constexpr double kUnevenClock = 1.15;
  if (peak.vector_rate > kMostUnits * kUnevenClock)
    fail(
        fmt::format("bench: FMA peak: expected at most {} vectors in a cycle of a core at {:.2f} "
                    "GHz, but got {:.2f}",
                    kMostUnits, peak.clock / 1e9, peak.vector_rate));
  return peak;
}

}  // namespace

FmaPeak fma_peak(const Executor& executor) { return peak_of(executor, chains_of_floats); }

FmaPeak bfloat16_peak(const Executor& executor) { return peak_of(executor, chains_of_pairs); }

double multiply_and_add(const Executor& executor) {
  return run_on_all(executor, chains_of_floats).operations;
}

double multiply_and_add_bfloat16(const Executor& executor) {
  return run_on_all(executor, chains_of_pairs).operations;
}

}  // namespace sextant::bench
#endif
