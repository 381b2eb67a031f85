// One test for each set of instructions that kernels were compiled for and this machine has.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace sextant {

// expect(): kernels, and hwy::SupportedTargets(), have that target only.
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
