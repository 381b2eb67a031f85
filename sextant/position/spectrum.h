// A spectrum: the rotation frequency of each pair of channels, in radians per position.
//
// RoPE (Su et al. 2021, arXiv 2104.09864) rotates pair f of a query or key at position t by t *
// theta_f,
//
//   (x1, x2) -> (x1 cos a - x2 sin a, x1 sin a + x2 cos a),   a = t * theta_f
//   theta_f = base^(-2f/R)
//
// XPOS (Sun et al. 2022, arXiv 2212.10554) also scales the pair, by e^{growth t} for queries and
// e^{-growth t} for keys. Every context extension (PI, NTK, YaRN, ...) maps a spectrum to a
// spectrum; none of them handles tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "sextant/base/export.h"
#include "sextant/position/double_double.h"
#include "sextant/position/turns.h"

namespace sextant {

// The channels of pair f, with R rotated channels.
enum class Pairing {
  kInterleaved,  // (2f, 2f + 1): the paper, GPT-J, Meta's Llama weights, GGUF "NORM"
  kHalfSplit,    // (f, f + R/2): GPT-NeoX, Hugging Face Llama, GGUF "NEOX"
};

struct Spectrum {
  struct Pair {
    int first = 0, second = 0;  // columns of q and k
    Real frequency = {};        // radians per position
    double growth = 0;          // natural log per position; XPOS only
    int axis = 0;               // which of a row's positions it uses; 0 unless multi-axis
  };
  std::vector<Pair> pairs;
  double gain = 1;  // on every rotated channel of q and k, so gain^2 on a score (YaRN)
};

struct RotaryOptions {
  int64_t dim = 0;  // R, the number of rotated channels: even, at most the head size
  double base = 10000;
  Pairing pairing = Pairing::kHalfSplit;
  int64_t first_column = 0;  // the first rotated channel (DeepSeek-V4 rotates the last ones)
  // Frequencies are the exact values rounded once to float32, for checkpoints that were trained
  // with a float32 table. Frameworks compute their table with powf and a division, up to 1.3 ulp
  // away; where a checkpoint stores its frequencies (inv_freq), assign them to Pair::frequency
  // instead.
  bool float32_frequencies = false;
};

// RoPE's spectrum, fastest pair first. Throws Error if dim is odd or negative, first_column is
// negative, or base is not finite and above 0.
SEXTANT_API Spectrum rotary(const RotaryOptions& options);

// Rounds frequencies once to float32, as RotaryOptions::float32_frequencies does; for use after a
// stretch.
SEXTANT_API Spectrum with_float32_frequencies(Spectrum spectrum);

// The same pairs rotated in the opposite direction, y1 = x1 cos + x2 sin: nanochat, modded-nanogpt,
// GRAPE.
SEXTANT_API Spectrum clockwise(Spectrum spectrum);

// XPOS: pair f of n is scaled by zeta_f^(t / scale_base), zeta_f = (f/n + gamma) / (1 + gamma),
// which is below 1: a score falls by zeta_f^(d / scale_base) with distance d. The paper has gamma
// 0.4, scale_base 512. Throws Error unless both are finite and above 0.
inline constexpr double kXposGamma = 0.4, kXposScaleBase = 512;
SEXTANT_API Spectrum with_xpos(Spectrum spectrum, double gamma, double scale_base);

// Scales every pair by xi^t: a score falls by xi^d with distance d. Throws Error unless xi is above
// 0 and at most 1.
SEXTANT_API Spectrum with_uniform_growth(Spectrum spectrum, double xi);

// A spectrum in the form that kernels use: frequencies as exact turns.
struct Rotation {
  struct Pair {
    int first = 0, second = 0;
    Turns frequency = {};
    double growth = 0;
    int axis = 0;
  };
  std::vector<Pair> pairs;
  double gain = 1;
};

SEXTANT_API Rotation rotation(const Spectrum& spectrum);

// Converts radians to turns, reduced modulo one turn: within 2^-127 turns of the exact quotient by
// 2 pi. Throws Error unless they are finite and below 2^64.
SEXTANT_API Turns turns(Real radians);

}  // namespace sextant
