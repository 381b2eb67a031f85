#include "sextant/attention/cpu/forward/forward.h"

#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sextant/attention/cpu/forward/forward.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/forward/amx-inl.h"
#include "sextant/attention/cpu/forward/decode-inl.h"
#include "sextant/attention/cpu/forward/strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

void forward_item(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch) {
  if (scratch.grouped.rows16 > 0)
    ForwardDecode(forward, item, scratch).attend();
  else if (forward.problem.terms > 0 && item.rows > kStrip)
    ForwardByAmx(forward, item, scratch).attend();
  else
    ForwardByStrips(forward, item, scratch).attend();
}

void forward_merge(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch) {
  ForwardTask(forward, item, scratch).merge_units();
}

int64_t most_item_floats() { return kFloatsOfL2 / 2; }

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::cpu {

HWY_EXPORT(forward_item);
HWY_EXPORT(forward_merge);
HWY_EXPORT(most_item_floats);

void run_forward_item(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(forward_item)(forward, item, scratch);
}

void run_forward_merge(const Forward& forward, const ForwardItem& item, ForwardScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(forward_merge)(forward, item, scratch);
}

int64_t item_floats() { return HWY_DYNAMIC_DISPATCH(most_item_floats)(); }

}  // namespace sextant::cpu
#endif
