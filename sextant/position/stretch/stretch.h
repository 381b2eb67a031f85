// A stretch: what is done to a spectrum so that a model reads further than it was trained to.
//
// Every method maps a spectrum to a spectrum; one file each in this folder. A dynamic stretch
// depends on how much text there is, of which three things have been meant (rotary.md 3.6, and
// docs/methods/rope.md): the text up to each query; the text there is so far, for all queries
// alike; or a length that one states. This file only answers which stretch belongs to a length.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "sextant/position/stretch/by_parts.h"
#include "sextant/position/stretch/linear.h"
#include "sextant/position/stretch/longrope.h"
#include "sextant/position/stretch/ntk.h"
#include "sextant/position/stretch/proportional.h"
#include "sextant/position/stretch/yarn.h"

namespace sextant {

// monostate: as it is.
using Stretch = std::variant<std::monostate, Linear, Ntk, NtkMixed, ByParts, PartNtk, Yarn,
                             LongRope, Proportional>;

Spectrum stretched(Spectrum spectrum, const Stretch& stretch);

// How the factor of a dynamic stretch grows with the length n of the text; 1 up to L =
// original_length.
enum class Growth {
  kRatio,        // n / L: Dynamic PI and YaRN (jquesnelle/yarn), and Su's s(i) at n = i + 1
  kHuggingFace,  // f n / L - (f - 1): rope_type "dynamic"; f = 1 is the ratio, f = 2 gives 3 at 2 L
  kDoubling,     // 2^(ceil(log2(n / L)) + 1) - 1: Qwen's first models; 3, 7, 15, ...
  kStep,         // 2: beyond L another list, whatever its factor (LongRoPE)
};

struct DynamicStretch {
  Stretch stretch;  // its factor is replaced
  Growth growth = Growth::kRatio;
  int64_t original_length = 0;  // L
  double factor = 1;            // f
  // LongRoPE: the divisors of texts up to L. Those beyond are the stretch's own.
  std::vector<double> short_factors = {};
  std::optional<double> short_gain = {};  // of those texts, where it is not the stretch's own

  friend bool operator==(const DynamicStretch&, const DynamicStretch&) = default;
};

// The factor at a text of n = length tokens. Throws Error if the length or L is below 1, or f is
// not a finite number of at least 1.
double dynamic_factor(const DynamicStretch& dynamic, int64_t length);

// The stretch of a text whose factor that is.
Stretch stretch_by(const DynamicStretch& dynamic, double factor);

// The stretch of a text of n = length tokens.
inline Stretch stretch_at(const DynamicStretch& dynamic, int64_t length) {
  return stretch_by(dynamic, dynamic_factor(dynamic, length));
}

}  // namespace sextant
