// The functions of the forward pass that forward.cc dispatches to, for one target.
#if defined(SEXTANT_ATTENTION_CPU_FORWARD_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_FORWARD_KERNELS_INL_H_
#undef SEXTANT_ATTENTION_CPU_FORWARD_KERNELS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_FORWARD_KERNELS_INL_H_
#endif

#include "sextant/attention/cpu/forward/amx-inl.h"
#include "sextant/attention/cpu/forward/decode-inl.h"
#include "sextant/attention/cpu/forward/forward.h"
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

#endif
