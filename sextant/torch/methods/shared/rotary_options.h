// The options shared by all code that rotates queries and keys by position: rope, xpos, and the
// operator sextant::rotate.
//
//   dim       R, the number of rotated channels; null: the whole head
//   columns   "first" or "last" of the head (DeepSeek-V4)
//   base      theta_f = base^(-2f/R)
//   pairing   "half-split": (f, f + R/2), or "interleaved": (2f, 2f + 1)
//   sense     "counter-clockwise" as in papers, or "clockwise" (nanochat, modded-nanogpt, GRAPE)
//   axes      "one", or the rule by which pairs follow several positions (sextant/position/axes.h):
//             "blocks", "interleaved", "restart", "restart-interleaved", "strided",
//             "plane-first", with `sections` pairs for each axis
//   float32_frequencies
//             frequencies rounded once to float32, as most checkpoints were trained with
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "sextant/position/spectrum.h"
#include "sextant/torch/methods/shared/options.h"

namespace sextant {

// The index of the option `axes` among its words, 0 for "one"; and whether the axes do not
// share one ladder of frequencies.
size_t axes_choice(const Options& options);
bool breaks_ladder(const Options& options);

// The pairs and their axes, at exact frequencies and in the counter-clockwise sense.
Spectrum rotary_ladder(const Options& options, int64_t head_dim);

Spectrum rotary_spectrum(const Options& options, int64_t head_dim);

// The number of axes that the pairs follow.
int64_t axes_of(const Spectrum& spectrum);

// The defaults of the options above, as the beginning of a JSON object: {"dim": null, ...
std::string rotary_defaults(const std::string& pairing);

// Rotates each pair of x [batch, heads, rows, columns] by its angle. cos and sin: [1 or batch, 1 or
// heads, rows, pairs]. Differentiable in all three.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                   const Spectrum& spectrum);

// The rotary position that each pair follows: [1 or batch, axes, rows] -> float64 [1 or batch, 1,
// rows, pairs].
at::Tensor positions_of_pairs(const at::Tensor& rotary_positions, const Spectrum& spectrum);

}  // namespace sextant
