// YaRN: NTK by parts with a ramp over the pairs, and sharper attention.
//
// Peng et al. 2023 (arXiv 2309.00071). Every released model uses the formula of the authors' code
// (jquesnelle/yarn, Hugging Face, DeepSeek, gpt-oss, ggml), whose ramp is linear in the pair's
// index, see ramp.h. The paper's own equation is linear in turns, see by_parts.h; single
// frequencies differ by up to 77 percent.
//
// Queries and keys are multiplied by `gain`, so scores by its square. The gain is 0.1 ln s + 1
// unless a model specifies another. With partial rotary it applies to the rotated channels only.
#pragma once

#include <cstdint>
#include <optional>

#include "sextant/base/export.h"
#include "sextant/position/spectrum.h"

namespace sextant {

struct Yarn {
  double factor = 1;            // s
  int64_t original_length = 0;  // L
  double base = 10000;          // of the spectrum; only kPairs uses it
  double beta_fast = 32, beta_slow = 1;
  enum class Ramp { kPairs, kTurns } ramp = Ramp::kPairs;  // the code's; the paper's
  bool truncate = true;                                    // kPairs only
  // The gain, if given. Otherwise, with both of the next two given and not 0, the gain is
  // temperature(s, mscale) / temperature(s, mscale_all_dim); otherwise temperature(s, 1).
  std::optional<double> attention_factor = {};
  std::optional<double> mscale = {}, mscale_all_dim = {};

  friend bool operator==(const Yarn&, const Yarn&) = default;
};

// 0.1 weight ln s + 1; 1 for s <= 1.
SEXTANT_API double yarn_temperature(double factor, double weight = 1);

// The factor on queries and keys. Throws Error if a parameter is not finite, or the attention
// factor is not above 0.
SEXTANT_API double yarn_gain(const Yarn& yarn);

// DeepSeek's factor on all scores, of rotated and plain channels alike: temperature(s,
// mscale_all_dim)^2; 1 without mscale_all_dim.
SEXTANT_API double yarn_score_factor(const Yarn& yarn);

// Also throws Error as yarn_gain() does, and if the length is below 1, a beta is not above 0 or the
// base is not above 1.
SEXTANT_API Spectrum stretched(Spectrum spectrum, const Yarn& yarn);

}  // namespace sextant
