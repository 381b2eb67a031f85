// Runs a test once for each SIMD target that the kernels were compiled for and this machine
// supports.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace sextant {

// During a call of expect(), hwy::SupportedTargets() and so the kernels are limited to one target.
template <class Expect>
void on_every_target(const Expect& expect) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    expect();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace sextant
