// Runs a test once for each SIMD target that the kernels were compiled for and this machine
// supports.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "sextant/base/simd/target.h"
#include "sextant/base/simd/targets.h"
// targets.h comes first.
#include <hwy/targets.h>

namespace sextant {

// During a call of expect() the kernels are limited to one target.
template <class Expect>
void on_every_target(const Expect& expect) {
  for (int64_t rest = simd_targets(); rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    limit_simd_targets(target);
    SCOPED_TRACE(hwy::TargetName(target));
    expect();
  }
  limit_simd_targets(0);
}

}  // namespace sextant
