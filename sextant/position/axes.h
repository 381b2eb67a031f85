// Assigns an axis to each rotary pair, for rows with several positions: time, height and width of
// an image patch, or its row and column.
#pragma once

#include <cstdint>
#include <span>

#include "sextant/base/export.h"
#include "sextant/position/spectrum.h"

namespace sextant {

enum class AxisOrder {
  // sections[a] consecutive pairs for axis a; pair f keeps its frequency. Qwen2-VL's M-RoPE, with
  // sections 16, 24, 24.
  kBlocks,
  // Pair f has axis a = f mod axes while f < axes * sections[a], and axis 0 for larger f. Qwen3-VL,
  // with sections 24, 20, 20.
  kInterleaved,
  // As kBlocks, but each axis has its own geometric sequence of frequencies: the i-th of n pairs
  // has the frequency base^(-i/n). The vision towers of Qwen2-VL; RoPE-ViT "axial" (base 100).
  kRestart,
  // As kRestart, but the axes take turns: pair f has axis f mod axes, and the frequency base^(-i/n)
  // for i = floor(f / axes). Sections are equal. Kimi-K2.5's vision tower.
  kRestartInterleaved,
  // As kBlocks, but the i-th pair of axis a has the frequency of pair axes * i + a. Sections are
  // equal. Pixtral.
  kStrided,
  // The first pairs follow axes 1 and 2 in turn, which have equal sections, and the slowest
  // sections[0] pairs axis 0; pair f keeps its frequency. Ernie 4.5 VL, with sections 20, 22, 22.
  kPlaneFirst,
};

// Throws Error unless the sections are positive, sum to the pairs, and are equal where they must.
SEXTANT_API Spectrum follow_axes(Spectrum spectrum, std::span<const int64_t> sections,
                                 AxisOrder order, double base);

}  // namespace sextant
