// The float32 vectors of this folder, of up to sixteen lanes.
#if defined(SEXTANT_DENSE_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_DENSE_VECTORS_INL_H_
#undef SEXTANT_DENSE_VECTORS_INL_H_
#else
#define SEXTANT_DENSE_VECTORS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::dense {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::CappedTag<float, 16>;
using V = hn::Vec<F32>;

inline constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(F32()));

}  // namespace HWY_NAMESPACE
}  // namespace sextant::dense
HWY_AFTER_NAMESPACE();

#endif
