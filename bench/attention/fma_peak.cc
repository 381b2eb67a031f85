#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/attention/fma_peak.cc"
#include <hwy/foreach_target.h>
// Highway's header must follow.
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "bench/attention/fma_peak.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `rounds` times 12 multiply-adds, each waiting only for the one 12 before it: more than any machine's
// latency times its units. Returns operations; `sink` keeps the compiler from leaving them out.
double multiply_add(int64_t rounds, float* HWY_RESTRICT sink) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999F), term = hn::Set(d, 0.001F);
  auto a0 = hn::Set(d, 1.0F), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0;
  auto a6 = a0, a7 = a0, a8 = a0, a9 = a0, a10 = a0, a11 = a0;
  for (int64_t n = 0; n < rounds; ++n) {
    a0 = hn::MulAdd(a0, factor, term);
    a1 = hn::MulAdd(a1, factor, term);
    a2 = hn::MulAdd(a2, factor, term);
    a3 = hn::MulAdd(a3, factor, term);
    a4 = hn::MulAdd(a4, factor, term);
    a5 = hn::MulAdd(a5, factor, term);
    a6 = hn::MulAdd(a6, factor, term);
    a7 = hn::MulAdd(a7, factor, term);
    a8 = hn::MulAdd(a8, factor, term);
    a9 = hn::MulAdd(a9, factor, term);
    a10 = hn::MulAdd(a10, factor, term);
    a11 = hn::MulAdd(a11, factor, term);
  }
  const auto sum = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)),
                           hn::Add(hn::Add(hn::Add(a4, a5), hn::Add(a6, a7)),
                                   hn::Add(hn::Add(a8, a9), hn::Add(a10, a11))));
  *sink = hn::GetLane(hn::SumOfLanes(d, sum));
  return 2.0 * 12 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace sextant::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
HWY_EXPORT(multiply_add);

double fma_peak(const Executor& executor) {
  constexpr int64_t kRounds = 3'000'000;  // about 10 ms
  const int workers = executor.workers();
  std::vector<float> sinks(static_cast<size_t>(workers));
  double best = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::vector<double> operations(static_cast<size_t>(workers));
    const auto start = std::chrono::steady_clock::now();
    executor.run(workers, [&](int64_t index, int) {
      const auto n = static_cast<size_t>(index);
      operations[n] = HWY_DYNAMIC_DISPATCH(multiply_add)(kRounds, &sinks[n]);
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    double all = 0;
    for (const double some : operations) all += some;
    best = std::max(best, all / seconds.count());
  }
  return best;
}

}  // namespace sextant::bench
#endif
