// The steps of the backward pass of plain attention. All queries of a sequence go through one unit
// of keys in blocks of kQueryBlock; their sums of dq are in memory. All other data is in cache:
// scratch of the task, and rows of do, which the kernel has read before to find non-finite values.
#include <algorithm>
#include <cstddef>

#include "bench/kernels/steps.h"
#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/kernels/backward.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/backward/rotate_back-inl.h"
#include "sextant/attention/cpu/backward/table_grads-inl.h"
#include "sextant/attention/cpu/tile/softmax_grad-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::bench {
namespace HWY_NAMESPACE {
using namespace cpu;
using namespace cpu::HWY_NAMESPACE;

// c = a b for one strip: a is rows, b a unit of keys or values in panels, c lines of scores.
void strip_product_step(int64_t unit, int64_t columns, const float* rows, const float* panels,
                        float* lines) {
  multiply<Sum::kNew>(kStrip, unit / kLanes, columns, LeftRows{rows, columns},
                      RightPanels{panels, kLanes * columns}, lines, kScoreStride);
}

void differentiate_step(int64_t unit, float* weights, float* grads, const float* lse,
                        const float* mean) {
  differentiate_softmax(kStrip, {0, unit}, {weights, grads, nullptr, nullptr, nullptr, lse, mean});
}

Band whole_band(int64_t unit) {
  Band band = {.rows = kQueryBlock};
  band.strips.fill({0, unit});
  return band;
}

void keys_step(int64_t unit, int64_t columns, const float* lines, const float* queries, float* to) {
  collect_things(whole_band(unit), false, lines, kScoreStride, {queries, columns}, columns, to);
}

void queries_step(int64_t unit, int64_t columns, const float* lines, const float* keys,
                  float* grads, float* sums) {
  collect_queries<Sum::kNew>(whole_band(unit), false, lines, kScoreStride, keys, columns, grads,
                             columns);
  add_scaled(kQueryBlock * columns, 0.125F, grads, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
namespace {

HWY_EXPORT(strip_product_step);
HWY_EXPORT(differentiate_step);
HWY_EXPORT(keys_step);
HWY_EXPORT(queries_step);

constexpr int64_t kQueries = 2048;

// Each function does the work of one block of queries, or of one strip of a block.
class Backward {
 public:
  explicit Backward(int64_t columns)
      : columns_(columns),
        unit_(cpu::backward_unit(columns)),
        numbers_(filled([&](cpu::Arena& arena) { lay_out(arena); })) {
    // About the log-sum-exp of scores near 0, so that the weights stay in range however often they
    // are computed.
    std::fill_n(lse_, cpu::kQueryBlock, 6.0F);
  }

  void score(int64_t row) {  // scores = q k
    HWY_DYNAMIC_DISPATCH(strip_product_step)
    (unit_, columns_, query_rows_ + row * columns_, keys_, line(weights_, row));
  }
  void multiply_values(int64_t row) {  // dp = do v
    HWY_DYNAMIC_DISPATCH(strip_product_step)
    (unit_, columns_, d_out_ + row * columns_, values_, line(grads_, row));
  }
  void differentiate(int64_t row) {  // p = e^(scores - lse), ds = p (dp - mean)
    HWY_DYNAMIC_DISPATCH(differentiate_step)
    (unit_, line(weights_, row), line(grads_, row), lse_ + row, mean_ + row);
  }
  void collect_values() {  // dv += p^T do
    HWY_DYNAMIC_DISPATCH(keys_step)(unit_, columns_, weights_, d_out_, value_grads_);
  }
  void collect_queries() {  // dq += ds k
    HWY_DYNAMIC_DISPATCH(queries_step)
    (unit_, columns_, grads_, key_rows_, query_grads_, query_sums_ + first_ * columns_);
  }
  void collect_keys() {  // dk += ds^T q
    HWY_DYNAMIC_DISPATCH(keys_step)(unit_, columns_, grads_, query_rows_, key_grads_);
  }
  void next() { first_ = (first_ + cpu::kQueryBlock) % kQueries; }

  int64_t unit() const { return unit_; }

 private:
  // The order is that of cpu::BackwardScratch.
  void lay_out(cpu::Arena& arena) {
    for (float** of_keys : {&keys_, &key_rows_, &key_grads_})
      *of_keys = arena.floats(unit_ * columns_);
    query_rows_ = arena.floats(cpu::kQueryBlock * columns_);
    for (float** of_values : {&values_, &value_grads_}) *of_values = arena.floats(unit_ * columns_);
    for (float** of_queries : {&lse_, &mean_}) *of_queries = arena.floats(cpu::kQueryBlock);
    for (float** lines : {&weights_, &grads_})
      *lines = arena.floats(cpu::kQueryBlock * cpu::kScoreStride);
    query_grads_ = arena.floats(cpu::kQueryBlock * columns_);
    query_sums_ = arena.floats(kQueries * columns_);
    d_out_ = arena.floats(cpu::kQueryBlock * columns_);
  }

  static float* line(float* lines, int64_t row) { return lines + row * cpu::kScoreStride; }

  int64_t columns_, unit_, first_ = 0;
  float *keys_, *key_rows_, *key_grads_, *query_rows_, *values_, *value_grads_;
  float *lse_, *mean_, *weights_, *grads_, *query_grads_, *query_sums_, *d_out_;
  AlignedFloats numbers_;  // the last member, since its initializer sets the pointers above
};

}  // namespace

Steps backward_steps(int64_t columns) {
  const auto kernel = std::make_shared<Backward>(columns);
  const double product = operations_of_product(cpu::kQueryBlock, kernel->unit(), columns);
  constexpr int64_t kBlocks = kQueries / cpu::kQueryBlock;
  const auto blocks = [&](auto one) { return each_part(kernel, kBlocks, one); };
  const auto strips = [&](auto one) {
    return blocks([one](Backward& b) {
      for (int64_t row = 0; row < cpu::kQueryBlock; row += cpu::kStrip) one(b, row);
    });
  };
  return {
      .name = "backward",
      .part = "block of 64 queries, " + std::to_string(kernel->unit()) + " keys",
      .parts = kBlocks,
      .list = {{"q k", product, strips([](Backward& b, int64_t row) { b.score(row); })},
               {"do v", product, strips([](Backward& b, int64_t row) { b.multiply_values(row); })},
               {"differentiate", 0, strips([](Backward& b, int64_t row) { b.differentiate(row); })},
               {"dv", product, blocks([](Backward& b) { b.collect_values(); })},
               {"dq", product, blocks([](Backward& b) { b.collect_queries(); })},
               {"dk", product, blocks([](Backward& b) { b.collect_keys(); })},
               {"all", 5 * product, blocks([](Backward& b) {
                  for (int64_t row = 0; row < cpu::kQueryBlock; row += cpu::kStrip) {
                    b.score(row);
                    b.multiply_values(row);
                    b.differentiate(row);
                  }
                  b.collect_values();
                  b.collect_queries();
                  b.collect_keys();
                })}}};
}

}  // namespace sextant::bench
#endif
