#include "bench/kernels/steps.h"

#include <cstddef>

#include "sextant/attention/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/kernels/steps.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/multiply-inl.h"
#include "sextant/attention/cpu/soften-inl.h"
#include "sextant/attention/cpu/totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

void score_step(int64_t columns, const float* queries, const float* keys, float* scores) {
  multiply<Sum::kNew>(kStrip, kUnit / kLanes, columns, {queries, 1, kLanes},
                      {keys, kLanes, kLanes * columns}, scores, kScoreRow);
}

void soften_step(float* scores, float* most) { soften(kStrip, {0, kUnit}, scores, most); }

void mix_step(int64_t columns, const float* weights, const float* values, const Partial& to) {
  multiply_and_total<Sum::kNew>(kStrip, columns / kLanes, kUnit, {weights, kScoreRow, 1},
                                {values, columns, kLanes}, to.out, columns, to.sum);
}

void merge_step(int64_t columns, const Partial& part, const Partial& all) {
  merge(kStrip, columns, part, all);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {

HWY_EXPORT(score_step);
HWY_EXPORT(soften_step);
HWY_EXPORT(mix_step);
HWY_EXPORT(merge_step);

}  // namespace sextant::cpu

namespace sextant::bench {
namespace {

// Numbers between -1/2 and 1/2 of which no two neighbours are alike.
void fill(float* x, int64_t count) {
  constexpr int64_t kStep = 37, kPeriod = 101;
  for (int64_t n = 0; n < count; ++n)
    x[n] = static_cast<float>(n * kStep % kPeriod) / static_cast<float>(kPeriod) - 0.5F;
}

}  // namespace

Steps::Steps(int64_t columns) : columns_(columns) {
  const auto lay_out = [&](cpu::Carver& carver) {
    queries_ = carver.floats(kQueries * columns);
    keys_ = carver.floats(cpu::kUnit * columns);
    values_ = carver.floats(cpu::kUnit * columns);
    scores_ = carver.floats(cpu::kStrip * cpu::kScoreRow);
    strip_ = cpu::Partial(cpu::kStrip, columns, carver);
    all_ = cpu::Partial(kQueries, columns, carver);
  };
  cpu::Carver measure;
  lay_out(measure);
  numbers_ = cpu::Floats(measure.used());
  cpu::Carver carver(numbers_.data());
  lay_out(carver);
  fill(numbers_.data(), measure.used());
}

void Steps::score() {
  const int64_t panel = cpu::round_down(row_, cpu::kLanes) * columns_ + row_ % cpu::kLanes;
  HWY_DYNAMIC_DISPATCH(cpu::score_step)(columns_, queries_ + panel, keys_, scores_);
}
void Steps::soften() { HWY_DYNAMIC_DISPATCH(cpu::soften_step)(scores_, strip_.most); }
void Steps::mix() { HWY_DYNAMIC_DISPATCH(cpu::mix_step)(columns_, scores_, values_, strip_); }
void Steps::merge() {
  HWY_DYNAMIC_DISPATCH(cpu::merge_step)(columns_, strip_, all_.at(row_, columns_));
}
void Steps::next() { row_ = (row_ + cpu::kStrip) % kQueries; }

double Steps::operations_of_product() const {
  return 2.0 * static_cast<double>(cpu::kStrip * cpu::kUnit * columns_);
}

}  // namespace sextant::bench
#endif
