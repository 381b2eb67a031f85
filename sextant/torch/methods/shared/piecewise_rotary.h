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
#include <functional>
#include <utility>
#include <vector>

#include "sextant/position/spectrum.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/rotary_plan.h"

namespace sextant {

// The phase of each pair at a distance, which may be fractional.
std::vector<Turns> phases(const Spectrum& spectrum, Real distance);

// The same pairs with frequency / factor.
Spectrum slowed(Spectrum spectrum, Real factor);

class PiecewiseRotary final : public Method {
 public:
  // The rotation of pairs of a query and a key that are `window` or more apart.
  struct Far {
    Rotation rotation;
    // Rotary positions int64 [1, 1, rows] of those within the window, which have this form, too.
    std::function<at::Tensor(const at::Tensor&)> positions;
    std::vector<Turns> offset;  // one for each pair
  };

  // log_n: see log_n_length(). relative: Method::relative() without log_n.
  PiecewiseRotary(const Spectrum& within, Far far, int64_t window, int64_t log_n,
                  bool relative = true)
      : within_(rotation(within)),
        far_(std::move(far)),
        window_(window),
        log_n_(log_n),
        relative_(relative) {}

  bool relative() const override { return relative_ && log_n_ == 0; }
  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override;

 private:
  Rotation within_;
  Far far_;
  int64_t window_, log_n_;
  bool relative_;
};

// The option "window": the first distance beyond the window.
int64_t window_length(const Options& options, int64_t otherwise);

// The option "log_n": null, or the training length L. A query at position i is then multiplied by
// max(1, log(i + 1) / log L) (Su 2021) before its rotation.
int64_t log_n_length(const Options& options);  // 0 stands for null

}  // namespace sextant
