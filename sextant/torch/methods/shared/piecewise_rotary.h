// Distances within a window turned as rope turns them, and those beyond it otherwise: what ReRoPE,
// Leaky ReRoPE and Self-Extend share.
//
//   relative position of a pair at distance d:   d                       |d| < window
//                                                far(d) + offset         d >= window
//                                                far(d) - offset         d <= -window
//
// far(d) comes from times and speeds of its own. Each line is a sweep of the score equation;
// together they are one pass, in which only tiles on the border compute two scores. Official codes,
// which are made for the causal mask, add the offset on either side.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sextant/position/spectrum.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"

namespace sextant {

// What turns pairs of a query and a key that are `window` or more apart.
struct FarRotation {
  Rotation rotation;
  at::Tensor query_rotary_positions, key_rotary_positions;  // int64 [1, 1, rows]
  std::vector<Turns> offset;                                // one for each pair
};

// The phases of a distance, for each pair. It need not be whole.
std::vector<Turns> phases(const Spectrum& spectrum, Real distance);

// The same pairs, slower: speed / factor.
Spectrum slowed(Spectrum spectrum, Real factor);

// Replaces the one sweep of `operands` by those within and beyond the window.
void turn_within_and_beyond(Operands& operands, const Layout& layout, const Rotation& within,
                            int64_t window, const FarRotation& beyond);

// The option "window": the first distance that is beyond.
int64_t window_length(const Options& options, int64_t otherwise);

// The option "log_n": null, or the training length L. Then a query at position i is multiplied by
// max(1, log(i + 1) / log L) (Su 2021), before it is turned.
int64_t log_n_length(const Options& options);  // 0: null
void scale_by_log_n(Operands& operands, const Layout& layout, int64_t length);

}  // namespace sextant
