// Which of a row's positions each pair of channels follows, where a row has several: time, height
// and width of a picture's patch, or its row and column.
#pragma once

#include <cstdint>
#include <span>

#include "sextant/position/spectrum.h"

namespace sextant {

enum class AxisOrder {
  // sections[a] pairs for axis a, one axis after the other; pair f keeps its speed. Qwen2-VL's
  // M-RoPE,
  // sections 16, 24, 24.
  kBlocks,
  // Pair f follows axis a = f mod axes while f < axes * sections[a], and axis 0 beyond. Qwen3-VL,
  // sections
  // 24, 20, 20.
  kInterleaved,
  // Blocks, and each axis has a ladder of its own: the i-th of n pairs turns base^(-i/n). The
  // vision
  // towers of Qwen2-VL; RoPE-ViT "axial" (base 100).
  kRestart,
};

// Throws Error unless the sections are positive and sum to the pairs.
Spectrum follow_axes(Spectrum spectrum, std::span<const int64_t> sections, AxisOrder order,
                     double base);

}  // namespace sextant
