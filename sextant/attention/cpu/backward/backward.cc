#include "sextant/attention/cpu/backward/backward.h"

#include "sextant/attention/cpu/own_file.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/attention/cpu/backward/backward.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "hwy/highway.h"
#if !(HWY_TARGET & SEXTANT_TARGETS_WITH_FILES)
#include "sextant/attention/cpu/backward/kernels-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

int64_t longest_unit(int64_t columns);
void backward_mean(const Backward& backward, int64_t batch, int64_t head, float* mean);
void backward_task(const Backward& backward, const TableSums& sums, int64_t task,
                   BackwardScratch& scratch);

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {

SEXTANT_EXPORT(longest_unit);
SEXTANT_EXPORT(backward_mean);
SEXTANT_EXPORT(backward_task);

int64_t backward_unit(int64_t columns) { return SEXTANT_DISPATCH(longest_unit)(columns); }

void run_backward_mean(Backward& backward, int64_t batch, int64_t head) {
  SEXTANT_DISPATCH(backward_mean)(backward, batch, head, backward.mean_of(batch, head));
}

void run_backward_task(const Backward& backward, const TableSums& sums, int64_t task,
                       BackwardScratch& scratch) {
  SEXTANT_DISPATCH(backward_task)(backward, sums, task, scratch);
}

}  // namespace sextant::cpu
#endif
