// YaRN: NTK by parts with a ramp over the pairs, and sharper attention.
//
// Peng et al. 2023 (arXiv 2309.00071). Every released model means the authors' code
// (jquesnelle/yarn, Hugging Face, DeepSeek, gpt-oss, ggml), whose ramp is linear in the pair's
// index, see ramp.h. The paper's own equation is linear in turns, see by_parts.h; single
// frequencies differ by up to 77 percent.
//
// Queries and keys are multiplied by `gain`, so scores by its square: 0.1 ln s + 1 unless a model
// says otherwise. With partial rotary only the turned channels are.
#pragma once

#include <cstdint>
#include <optional>

#include "sextant/position/spectrum.h"

namespace sextant {

struct Yarn {
  double factor = 1;            // s
  int64_t original_length = 0;  // L
  double base = 10000;          // of the spectrum; the code's ramp needs it
  double beta_fast = 32, beta_slow = 1;
  enum class Ramp { kPairs, kTurns } ramp = Ramp::kPairs;  // of the code; of the paper
  bool truncate = true;                                    // the code's ramp only
  // The gain, if it is given. Else, with both of the next two given and not 0, it is
  // temperature(s, mscale) / temperature(s, mscale_all_dim); else temperature(s, 1).
  std::optional<double> attention_factor = {};
  std::optional<double> mscale = {}, mscale_all_dim = {};

  friend bool operator==(const Yarn&, const Yarn&) = default;
};

// 0.1 weight ln s + 1; 1 for s <= 1.
double yarn_temperature(double factor, double weight = 1);

// What queries and keys are multiplied by. Throws Error if a number is not finite, or the attention
// factor is not above 0.
double yarn_gain(const Yarn& yarn);

// DeepSeek multiplies scores of the turned and the plain channels alike by temperature(s,
// mscale_all_dim)^2; 1 without mscale_all_dim.
double yarn_score_factor(const Yarn& yarn);

// Throws Error too as yarn_gain() does, and if the length is below 1, a beta is not above 0 or the
// base is not above 1.
Spectrum stretched(Spectrum spectrum, const Yarn& yarn);

}  // namespace sextant
