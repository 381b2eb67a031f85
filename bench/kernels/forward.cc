// The steps of the forward pass of plain attention. 512 queries share a unit of keys.
#include <cstddef>

#include "bench/kernels/steps.h"
#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/kernels/forward.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/tile/multiply-inl.h"
#include "sextant/attention/cpu/tile/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::bench {
namespace HWY_NAMESPACE {
using namespace cpu;
using namespace cpu::HWY_NAMESPACE;

void score_step(int64_t columns, const float* queries, const float* keys, float* scores) {
  multiply<Sum::kNew>(kStrip, kUnit / kLanes, columns, LeftColumns{queries, kLanes},
                      RightPanels{keys, kLanes * columns}, scores, kScoreStride);
}

void softmax_step(float* scores, float* most, float* weights) {
  KeepAll keep;
  softmax_strip(kStrip, {0, kUnit}, scores, most, weights, keep);
}

void pv_step(int64_t columns, const float* weights, const float* values, const SoftmaxState& to) {
  multiply_and_total<Sum::kNew>(kStrip, columns / kLanes, kUnit, weights,
                                RightRows{values, columns}, to.out, columns, to.row_sum);
}

void merge_step(int64_t columns, const SoftmaxState& part, const SoftmaxState& all) {
  merge(kStrip, columns, part, all);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
namespace {

HWY_EXPORT(score_step);
HWY_EXPORT(softmax_step);
HWY_EXPORT(pv_step);
HWY_EXPORT(merge_step);

constexpr int64_t kQueries = 512;

// Each function does the work of one strip.
class Forward {
 public:
  explicit Forward(int64_t columns)
      : columns_(columns), numbers_(filled([&](cpu::Arena& arena) {
          queries_ = arena.floats(kQueries * columns);
          keys_ = arena.floats(cpu::kUnit * columns);
          values_ = arena.floats(cpu::kUnit * columns);
          scores_ = arena.floats(cpu::kStrip * cpu::kScoreStride);
          weights_ = arena.floats(cpu::kStrip * cpu::kUnit);
          strip_ = cpu::SoftmaxState(cpu::kStrip, columns, arena);
          all_ = cpu::SoftmaxState(kQueries, columns, arena);
        })) {}

  void score() {  // scores = q k
    HWY_DYNAMIC_DISPATCH(score_step)
    (columns_, queries_ + in_panels(row_, columns_), keys_, scores_);
  }
  void softmax_strip() {  // weights = e^(scores - row_max)
    HWY_DYNAMIC_DISPATCH(softmax_step)(scores_, strip_.row_max, weights_);
  }
  void multiply_pv() {  // out = weights v, row_sum = sum of the weights
    HWY_DYNAMIC_DISPATCH(pv_step)(columns_, weights_, values_, strip_);
  }
  void merge() {  // with the state of earlier units
    HWY_DYNAMIC_DISPATCH(merge_step)(columns_, strip_, all_.at(row_, columns_));
  }
  void next() { row_ = (row_ + cpu::kStrip) % kQueries; }

 private:
  int64_t columns_, row_ = 0;
  float *queries_ = nullptr, *keys_ = nullptr, *values_ = nullptr, *scores_ = nullptr,
        *weights_ = nullptr;
  cpu::SoftmaxState strip_, all_;
  AlignedFloats numbers_;  // the last member, since its initializer sets the pointers above
};

}  // namespace

Steps forward_steps(int64_t columns) {
  const double product = operations_of_product(cpu::kStrip, cpu::kUnit, columns);
  constexpr int64_t kStrips = kQueries / cpu::kStrip;
  const auto kernel = std::make_shared<Forward>(columns);
  const auto strips = [&](auto one) { return each_part(kernel, kStrips, one); };
  return {.name = "forward",
          .part = "strip of 8 queries, 256 keys",
          .parts = kStrips,
          .list = {{"q k", product, strips([](Forward& f) { f.score(); })},
                   {"softmax", 0, strips([](Forward& f) { f.softmax_strip(); })},
                   {"p v", product, strips([](Forward& f) { f.multiply_pv(); })},
                   {"merge", 0, strips([](Forward& f) { f.merge(); })},
                   {"all", 2 * product, strips([](Forward& f) {
                      f.score();
                      f.softmax_strip();
                      f.multiply_pv();
                      f.merge();
                    })}}};
}

}  // namespace sextant::bench
#endif
