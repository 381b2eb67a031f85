// Piecewise rotary positions, shared by ReRoPE, Leaky ReRoPE and Self-Extend: distances within a
// window are rotated as RoPE does, distances beyond it by another rule.
//
//   relative position of a pair at distance d:   d                       |d| < window
//                                                far(d) + offset         d >= window
//                                                far(d) - offset         d <= -window
//
// far(d) comes from rotary positions and frequencies of its own. Each line is a sweep of the score
// equation; all sweeps are computed in one pass, in which only tiles on the border compute two
// scores. The official codes are made for the causal mask and add the offset on either side.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sextant/position/spectrum.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"

namespace sextant {

// The rotation of pairs of a query and a key that are `window` or more apart.
struct FarRotation {
  Rotation rotation;
  at::Tensor query_rotary_positions, key_rotary_positions;  // int64 [1, 1, rows]
  std::vector<Turns> offset;                                // one for each pair
};

// The phase of each pair at a distance, which may be fractional.
std::vector<Turns> phases(const Spectrum& spectrum, Real distance);

// The same pairs with frequency / factor.
Spectrum slowed(Spectrum spectrum, Real factor);

// Replaces the single sweep of `operands` by sweeps within and beyond the window.
void turn_within_and_beyond(TensorOperands& operands, const Layout& layout, const Rotation& within,
                            int64_t window, const FarRotation& beyond);

// The option "window": the first distance beyond the window.
int64_t window_length(const Options& options, int64_t otherwise);

// The option "log_n": null, or the training length L. A query at position i is then multiplied by
// max(1, log(i + 1) / log L) (Su 2021) before its rotation.
int64_t log_n_length(const Options& options);  // 0 stands for null
void scale_by_log_n(TensorOperands& operands, const Layout& layout, int64_t length);

}  // namespace sextant
