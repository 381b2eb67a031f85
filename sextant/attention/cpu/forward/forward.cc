#include "sextant/attention/cpu/forward/forward.h"

#include "sextant/attention/cpu/own_file.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/attention/cpu/forward/forward.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "hwy/highway.h"
#if !(HWY_TARGET & SEXTANT_TARGETS_WITH_FILES)
#include "sextant/attention/cpu/forward/kernels-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

void forward_item(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch);
void forward_merge(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch);
int64_t most_item_floats();

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {

SEXTANT_EXPORT(forward_item);
SEXTANT_EXPORT(forward_merge);
SEXTANT_EXPORT(most_item_floats);

void run_forward_item(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch) {
  SEXTANT_DISPATCH(forward_item)(forward, item, scratch);
}

void run_forward_merge(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch) {
  SEXTANT_DISPATCH(forward_merge)(forward, item, scratch);
}

int64_t item_floats() { return SEXTANT_DISPATCH(most_item_floats)(); }

}  // namespace sextant::cpu
#endif
