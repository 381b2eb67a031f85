// A stretch: a context extension, which changes a spectrum so that a model can handle longer
// sequences than it was trained on.
//
// Every method maps a spectrum to a spectrum; this folder has a header for each. A dynamic stretch
// depends on the length of the sequence, which has been defined in three ways
// (docs/methods/rope.md): the sequence up to each query; the sequence so far, for all queries
// alike; or a given length. This file only maps a length to a stretch.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/position/stretch/by_parts.h"
#include "sextant/position/stretch/linear.h"
#include "sextant/position/stretch/longrope.h"
#include "sextant/position/stretch/ntk.h"
#include "sextant/position/stretch/proportional.h"
#include "sextant/position/stretch/yarn.h"

namespace sextant {

// monostate: no stretch.
using Stretch = std::variant<std::monostate, Linear, Ntk, NtkMixed, ByParts, PartNtk, Yarn,
                             LongRope, Proportional>;

SEXTANT_API Spectrum stretched(Spectrum spectrum, const Stretch& stretch);

// The factor of a dynamic stretch as a function of the sequence length n; 1 up to L =
// original_length.
enum class Growth {
  kRatio,        // n / L: Dynamic PI and YaRN (jquesnelle/yarn), and Su's s(i) at n = i + 1
  kHuggingFace,  // f n / L - (f - 1): rope_type "dynamic"; f = 1 is the ratio, f = 2 gives 3 at 2 L
  kDoubling,     // 2^(ceil(log2(n / L)) + 1) - 1: Qwen's first models; 3, 7, 15, ...
  kStep,         // 2: beyond L the other list, whatever its factor (LongRoPE)
};

struct DynamicStretch {
  Stretch stretch;  // its factor is replaced
  Growth growth = Growth::kRatio;
  int64_t original_length = 0;  // L
  double factor = 1;            // f
  // LongRoPE: the divisors for sequences up to L. `stretch` holds the divisors for longer ones.
  std::vector<double> short_factors = {};
  std::optional<double> short_gain = {};  // up to L; null: the stretch's own

  friend bool operator==(const DynamicStretch&, const DynamicStretch&) = default;
};

// The factor for a sequence of n = length tokens. Throws Error if the length or L is below 1, or f
// is not a finite number of at least 1.
SEXTANT_API double dynamic_factor(const DynamicStretch& dynamic, int64_t length);

// The stretch with the given factor.
SEXTANT_API Stretch stretch_by(const DynamicStretch& dynamic, double factor);

// The stretch for a sequence of n = length tokens.
inline Stretch stretch_at(const DynamicStretch& dynamic, int64_t length) {
  return stretch_by(dynamic, dynamic_factor(dynamic, length));
}

}  // namespace sextant
