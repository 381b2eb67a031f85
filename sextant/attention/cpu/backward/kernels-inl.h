// The functions of the backward pass that backward.cc dispatches to, for one target.
#if defined(SEXTANT_ATTENTION_CPU_BACKWARD_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SEXTANT_ATTENTION_CPU_BACKWARD_KERNELS_INL_H_
#undef SEXTANT_ATTENTION_CPU_BACKWARD_KERNELS_INL_H_
#else
#define SEXTANT_ATTENTION_CPU_BACKWARD_KERNELS_INL_H_
#endif

#include <cstddef>
#include <optional>

#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/backward/strips-inl.h"
#include "sextant/base/simd/amx.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::cpu {
namespace HWY_NAMESPACE {

int64_t longest_unit(int64_t columns) {
  constexpr int64_t kFloats = kFloatsOfL2 / 8, kShortestUnit = 64;
  int64_t unit = kUnit;
  while (unit > kShortestUnit && unit * columns > kFloats) unit /= 2;
  return unit;
}

// mean = do . out, for every query of one head.
void backward_mean(const Backward& backward, int64_t batch, int64_t head, float* mean) {
  const HostAnyView<const float>& a = backward.d_out;
  const HostAnyView<const float>& b = backward.result.out;
  const bool plain = a.column_stride == 1 && b.column_stride == 1;
  for (int64_t i = 0; i < a.rows; ++i) {
    const auto* const out = static_cast<const std::byte*>(b.at(batch, head, i));
    Lanes sum = set(0);
    int64_t c = 0;
    with_type(a.dtype, a.at(batch, head, i), [&](const auto* x) HWY_ATTR {
      for (; plain && c + kLanes <= a.columns; c += kLanes)
        with_type(b.dtype, out + c * b.element_size(),
                  [&](const auto* y) HWY_ATTR { sum = mul_add(load(x + c), load(y), sum); });
    });
    float rest = 0;
    for (; c < a.columns; ++c) rest += a(batch, head, i, c) * b(batch, head, i, c);
    mean[i] = sum_of(sum) + rest;
  }
}

void backward_task(const Backward& backward, const TableSums& sums, int64_t task,
                   BackwardScratch& scratch) {
  std::optional<amx::Tiles> tiles;
  if (backward.problem.terms > 0) tiles.emplace();
  BackwardWalk(backward, sums, task, scratch).walk();
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::cpu
HWY_AFTER_NAMESPACE();

#endif
